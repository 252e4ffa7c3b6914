# One image for every process of the project: which one runs is the command.
FROM node:20.19.5-bookworm-slim

# Sources run through tsx, so there is no build step; certificates are for Temporal over TLS.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates tini \
 && rm -rf /var/lib/apt/lists/*

ENV NODE_ENV=production
WORKDIR /app

COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

COPY tsconfig.json ./
COPY domain ./domain
COPY db ./db
COPY channels ./channels
COPY workflows ./workflows
COPY activities ./activities
COPY api ./api
COPY worker ./worker
COPY mock-channel ./mock-channel
COPY scripts ./scripts

# The mock channel's books; a volume mounted here takes over the owner.
RUN mkdir -p /var/lib/mock-channel && chown node:node /var/lib/mock-channel
USER node

# tini hands SIGTERM on, so that a worker finishes what it has begun.
ENTRYPOINT ["tini", "--", "node", "--enable-source-maps", "--import", "tsx"]
CMD ["api/main.ts"]
