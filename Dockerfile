# nmt in a container. Build: docker build -t nmt .
# Use, in a folder of your own: docker run --rm -it -v "$PWD:/work" --user "$(id -u):$(id -g)" nmt init first
# With the page: docker run --rm -p 8000:8000 -e NMT_TOKEN -v "$PWD:/work" nmt serve --host 0.0.0.0
# NMT_TOKEN is a token of your choice, of at least 16 characters.
# --build-arg TORCH_INDEX=URL takes torch from PyTorch's package index for a device: the one for CPUs makes a much smaller image. With
# the one for a version of CUDA, run with --gpus all.
FROM python:3.12-slim AS build
WORKDIR /source
RUN pip install --no-cache-dir hatchling
COPY . .
RUN python -m hatchling build -t wheel -d /dist

# A small image without torch, with a run that `nmt export RUN -o exported` wrote beside this file:
# docker build --target exported -t translate .
# docker run --rm -p 8000:8000 -e NMT_TOKEN translate
FROM python:3.12-slim AS exported
COPY --from=build /dist /dist
COPY exported /exported
RUN pip install --no-cache-dir -r /exported/requirements.txt fastapi python-multipart uvicorn \
    && pip install --no-cache-dir --no-deps /dist/*.whl && rm -r /dist
ENV HOME=/tmp
ENTRYPOINT ["nmt"]
CMD ["serve", "/exported", "--host", "0.0.0.0"]

FROM python:3.12-slim
ARG TORCH_INDEX
RUN pip install --no-cache-dir torch ${TORCH_INDEX:+--index-url "$TORCH_INDEX"}
COPY --from=build /dist /dist
RUN pip install --no-cache-dir "$(echo /dist/*.whl)[documents,formats,serve,tensorboard]" && rm -r /dist
# A user without a home folder can still cache downloads and fonts.
ENV HOME=/tmp
WORKDIR /work
ENTRYPOINT ["nmt"]
CMD ["--help"]
