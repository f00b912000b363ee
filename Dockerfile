# hack/build.sh builds this for every platform that Node.js is published for.
#
# node:24-trixie-slim with Node.js 24.21.0, an index of linux/amd64, arm64, ppc64le and s390x. The digest is the one that Docker
# recorded in docker-library/repo-info, repos/node/remote/24-trixie-slim.md, of 19 September 2026. Not node:24-slim: the images on
# bookworm are no longer built for s390x. To move to a newer one: `docker buildx imagetools inspect node:24-trixie-slim`.
ARG BASE_IMAGE=docker.io/library/node:24-trixie-slim@sha256:8ec5d7557396cfe32d21c3f9c13072355ceab22b584578ca4bb28af31120cffe

# Built on the builder's own platform: the bundle does not depend on it, and nothing has to be emulated.
FROM --platform=$BUILDPLATFORM ${BASE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts --no-audit --no-fund
# Of tsconfig.json esbuild takes "strict": without it the bundle would differ from the one that the tests run.
COPY tsconfig.json ./
COPY hack/build.mjs hack/without-unused.mjs hack/
COPY src src
RUN node hack/build.mjs

# This stage has no RUN, so that no emulation is needed.
# The platform is named because buildah 1.28 would otherwise take the base of the stage above for every platform.
FROM --platform=$TARGETPLATFORM ${BASE_IMAGE}
ARG BASE_IMAGE
LABEL org.opencontainers.image.title="archaware-controller" \
      org.opencontainers.image.description="Architecture-aware placement of pods for Kubernetes clusters that mix CPU architectures" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"
# Node.js looks up names in four threads by default. A few names whose DNS never answers would block them all.
ENV NODE_ENV=production UV_THREADPOOL_SIZE=64
WORKDIR /app
# Explicit modes, so that the same commit gives the same digest: the modes of a checkout depend on the umask. BuildKit gives the
# directories that it creates the same mode, and a directory with 0644 cannot be entered.
COPY --chmod=0644 package.json LICENSE ./
COPY --from=build --chmod=0755 /build/dist/main.js dist/
# For people: kubectl exec … -- archaware explain …
COPY --chmod=0755 hack/image/archaware.sh /usr/local/bin/archaware
# An unprivileged user, the same number as in the manifests: runAsNonRoot needs a number, not a name.
USER 65532:65532
ENTRYPOINT ["node", "dist/main.js"]
CMD ["run"]
