# docker build -t tamis . && docker run --rm -v "$PWD:/data" tamis look sensors.csv
FROM python:3.13-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN pip wheel --no-cache-dir --no-deps -w /wheels /source

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[cli,plots]" && rm -r /wheels && useradd --create-home tamis
USER tamis
WORKDIR /data
ENTRYPOINT ["tamis"]
CMD ["--help"]
