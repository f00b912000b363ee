# hack/build.sh builds this for every platform that Node.js is published for.
#
# node:24-trixie-slim with Node.js 24.21.0, an index of linux/amd64, arm64, ppc64le and s390x. The digest is the one that Docker
# recorded in docker-library/repo-info, repos/node/remote/24-trixie-slim.md, of 19 September 2026. Not node:24-slim: the images on
# bookworm are no longer built for s390x. To move to a newer one: `docker buildx imagetools inspect node:24-trixie-slim`.
ARG BASE_IMAGE=docker.io/library/node:24-trixie-slim@sha256:8ec5d7557396cfe32d21c3f9c13072355ceab22b584578ca4bb28af31120cffe

# On the platform of whoever builds: the bundle is the same everywhere, and nothing has to be emulated.
FROM --platform=$BUILDPLATFORM ${BASE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts --no-audit --no-fund
COPY hack/build.mjs hack/
COPY src src
RUN node hack/build.mjs

# Without a RUN, for the same reason.
# The platform is named as buildah 1.28 would otherwise take the base of the stage above, whatever it builds for.
FROM --platform=$TARGETPLATFORM ${BASE_IMAGE}
ARG BASE_IMAGE
LABEL org.opencontainers.image.title="archaware-controller" \
      org.opencontainers.image.description="Architecture-aware placement of pods for Kubernetes clusters that mix CPU architectures" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"
# Names whose DNS never answers would otherwise hold up good ones: four threads serve all look-ups.
ENV NODE_ENV=production UV_THREADPOOL_SIZE=64
WORKDIR /app
# Modes are given: those of a checkout depend on the umask, and the same commit is to give the same digest. BuildKit gives the
# directories on the way the same mode, and nobody could enter one of 0644.
COPY --chmod=0644 package.json LICENSE ./
COPY --from=build --chmod=0755 /build/dist/main.js dist/
# For people: kubectl exec … -- archaware explain …
COPY --chmod=0755 hack/image/archaware.sh /usr/local/bin/archaware
# Nobody; the number is that of the manifests. runAsNonRoot needs a number, not a name.
USER 65532:65532
ENTRYPOINT ["node", "dist/main.js"]
CMD ["run"]
