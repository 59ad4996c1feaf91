"""Imported once by the server that forks the processes of the campaign: what readers import on use
takes seconds.
"""
