# packtool on Debian's own Python:
#   docker build -t packtool .
#   docker run --rm -v "$PWD:/data" packtool tokenize corpus.jsonl -o tokens
# Where there is no registry for the base image, the same steps make a machine of one's own, on any Debian 13 or Ubuntu 24.04.
FROM debian:trixie-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN python3 -m venv /opt/packtool \
 && /opt/packtool/bin/pip install --no-cache-dir -c /src/constraints.txt /src \
 && rm -rf /src
ENV PATH=/opt/packtool/bin:$PATH
WORKDIR /data
ENTRYPOINT ["packtool"]
CMD ["--help"]
