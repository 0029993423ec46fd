# p2psim in a container; docs/install.md shows the commands.
FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY p2psim p2psim
COPY scenarios scenarios
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
COPY constraints.txt /wheels/
COPY --from=build /wheels /wheels
RUN wheel=$(echo /wheels/p2psim-*.whl) && pip install --no-cache-dir --constraint /wheels/constraints.txt "${wheel}[data]"
# Kernels are compiled here, not at each start; whoever runs the container may add to the cache.
ENV XDG_CACHE_HOME=/cache MPLCONFIGDIR=/cache/matplotlib
RUN useradd --create-home --uid 1000 p2psim && install -d -o p2psim -m 1777 /cache /work
USER p2psim
WORKDIR /tmp
RUN umask 0 && p2psim new warm && p2psim run warm.yaml --replicas 1 --jobs 1 && rm -r warm.yaml runs
WORKDIR /work
ENTRYPOINT ["p2psim"]
CMD ["--help"]
