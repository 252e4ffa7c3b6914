/** Where the parts of one server listen, all on the loopback address. */
export interface ServerPorts {
  frontend: number;
  frontendMembership: number;
  matching: number;
  matchingMembership: number;
  history: number;
  historyMembership: number;
  worker: number;
  workerMembership: number;
}

export interface ServerDatabase {
  host: string;
  port: number;
  user: string;
  password: string;
}

/** Names of its two databases, as everywhere in Temporal's own documents. */
export const DATABASES = { main: 'temporal', visibility: 'temporal_visibility' } as const;

/** As the server's own image sets it, and so docker-compose.yml. It can never be changed later. */
const HISTORY_SHARDS = 4;
const MAIN_CONNECTIONS_MAX = 20;
const VISIBILITY_CONNECTIONS_MAX = 10;

/**
 * The server's configuration file: one process with all four services, nothing reachable from outside.
 * It is JSON, which is YAML too. Holds the database's password: write it for its owner alone.
 */
export function serverConfig(
  database: ServerDatabase,
  ports: ServerPorts,
  dynamicConfigFile: string,
): string {
  const store = (databaseName: string, maxConns: number) => ({
    sql: {
      pluginName: 'postgres12',
      databaseName,
      connectAddr: `${database.host}:${database.port}`,
      connectProtocol: 'tcp',
      user: database.user,
      password: database.password,
      maxConns,
      maxIdleConns: maxConns,
      maxConnLifetime: '1h',
    },
  });
  const service = (grpcPort: number, membershipPort: number) => ({
    rpc: { grpcPort, membershipPort, bindOnLocalHost: true },
  });
  const frontend = `127.0.0.1:${ports.frontend}`;
  return JSON.stringify(
    {
      log: { stdout: true, level: 'warn' },
      persistence: {
        defaultStore: 'main',
        visibilityStore: 'visibility',
        numHistoryShards: HISTORY_SHARDS,
        datastores: {
          main: store(DATABASES.main, MAIN_CONNECTIONS_MAX),
          visibility: store(DATABASES.visibility, VISIBILITY_CONNECTIONS_MAX),
        },
      },
      global: { membership: { maxJoinDuration: '30s', broadcastAddress: '127.0.0.1' } },
      services: {
        frontend: service(ports.frontend, ports.frontendMembership),
        matching: service(ports.matching, ports.matchingMembership),
        history: service(ports.history, ports.historyMembership),
        worker: service(ports.worker, ports.workerMembership),
      },
      clusterMetadata: {
        enableGlobalNamespace: false,
        failoverVersionIncrement: 10,
        masterClusterName: 'active',
        currentClusterName: 'active',
        clusterInformation: {
          active: {
            enabled: true,
            initialFailoverVersion: 1,
            rpcName: 'frontend',
            rpcAddress: frontend,
          },
        },
      },
      dcRedirectionPolicy: { policy: 'noop' },
      publicClient: { hostPort: frontend },
      dynamicConfigClient: { filepath: dynamicConfigFile, pollInterval: '60s' },
    },
    null,
    2,
  );
}
