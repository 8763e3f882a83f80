# The HTTP service of genpool with its included models.
#
#   docker build -t genpool .
#   docker run --read-only --tmpfs /tmp -p 8000:8000 -e GENPOOL_API_KEY=secret genpool
#
# Your own model: -v ./my-model:/model:ro ... genpool serve /model --host 0.0.0.0
FROM python:3.12-slim AS build

WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
# The default build of PyTorch for Linux contains gigabytes of CUDA. PyTorch's installation page names
# the index of its CPU builds: --build-arg TORCH_INDEX=...
ARG TORCH_INDEX=""
RUN python -m venv /opt/genpool \
    && /opt/genpool/bin/pip install --no-cache-dir -c constraints.txt \
        ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch \
    && /opt/genpool/bin/pip install --no-cache-dir -c constraints.txt '.[serve]'

FROM python:3.12-slim

RUN useradd --system --uid 10001 --no-create-home genpool
COPY --from=build /opt/genpool /opt/genpool
ENV PATH=/opt/genpool/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
# SIGTERM stops it gracefully: what was accepted is answered.
STOPSIGNAL SIGTERM
CMD ["genpool", "serve", "--host", "0.0.0.0", "--port", "8000"]
