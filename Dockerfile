# docker build -t delegraph . && docker run --rm -v "$PWD:/data" delegraph info edges/
FROM python:3.12-slim
# What is compiled is kept in the image, so that no container compiles it again.
ENV NUMBA_CACHE_DIR=/var/cache/delegraph
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir .
RUN mkdir -p "$NUMBA_CACHE_DIR" && delegraph warm-up && chmod -R a+rwX "$NUMBA_CACHE_DIR"
WORKDIR /data
ENTRYPOINT ["delegraph"]
