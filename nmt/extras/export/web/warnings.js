function warningsOf() { return []; }
