# The command line in a container:
#   docker build -t discreet .
#   docker run --rm -v "$PWD:/data" --user "$(id -u):$(id -g)" discreet fit patients.csv --schema schema.toml --epsilon 1 \
#     --ledger ledger.db -o model.zip
# Keep the ledger and its key in the mounted folder: what stays in a container is gone with it, and what was spent with it.
# `explore` and `start` serve pages on the container's own address only, which cannot be reached from outside; use `report`.
FROM python:3.12-slim
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY tools/readme.py tools/readme.py
COPY docs docs
RUN pip install --no-cache-dir '.[files,plot,sklearn]' && rm -rf /src/*
WORKDIR /data
ENV HOME=/tmp MPLBACKEND=Agg
ENTRYPOINT ["discreet"]
CMD ["--help"]
