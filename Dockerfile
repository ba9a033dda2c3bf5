# docker build -t delegraph . && docker run --rm -v "$PWD:/data" delegraph info edges/
FROM python:3.12-slim
# The kernels of these questions are compiled here, so that a container need not do it.
ARG QUESTIONS="components pagerank betweenness closeness"
ENV NUMBA_CACHE_DIR=/var/cache/delegraph
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir .
RUN mkdir /tmp/first && cd /tmp/first && delegraph generate kronecker --scale 8 -o edges && for question in $QUESTIONS; do delegraph "$question" edges -o "$question"; done && rm -r /tmp/first && chmod -R a+rwX /var/cache/delegraph
WORKDIR /data
ENTRYPOINT ["delegraph"]
