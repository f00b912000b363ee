# Nothing is built from this file. Dependabot does not update the ARG of the Dockerfile above it, so it updates this line.
# Copy the new line into /Dockerfile then; a test compares them.
FROM docker.io/library/node:24-trixie-slim@sha256:8ec5d7557396cfe32d21c3f9c13072355ceab22b584578ca4bb28af31120cffe
