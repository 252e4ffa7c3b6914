import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const root = join(__dirname, '..', '..');

interface Service {
  image?: string;
  build?: string;
  command?: string[];
  entrypoint?: string[];
  restart?: string;
  environment?: Record<string, string>;
  ports?: string[];
  volumes?: string[];
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test: string[]; interval: string; timeout: string; retries: number };
}

interface Compose {
  name?: string;
  services: Record<string, Service>;
  volumes?: Record<string, unknown>;
}

const text = readFileSync(join(root, 'docker-compose.yml'), 'utf8');
const compose = parse(text, { merge: true }) as Compose;
const services = Object.entries(compose.services);
const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8');
const ours = services.filter(([, service]) => service.build !== undefined);

/** The port that each service listens at inside, as its own configuration says. */
const LISTENS: Record<string, number[]> = {
  postgres: [5432],
  temporal: [7233],
  'temporal-ui': [8080],
  'mock-channel': portsOf('mock-channel', [
    'MOCK_CHANNEL_CONTROL_PORT',
    'MOCK_CHANNEL_A_PORT',
    'MOCK_CHANNEL_B_PORT',
  ]),
  'api-1': portsOf('api-1', ['API_PORT']),
  'api-2': portsOf('api-2', ['API_PORT']),
  'worker-1': portsOf('worker-1', ['WORKER_HEALTH_PORT']),
  'worker-2': portsOf('worker-2', ['WORKER_HEALTH_PORT']),
};

function portsOf(service: string, names: string[]): number[] {
  return names.map((name) => Number(compose.services[service]?.environment?.[name]));
}

test('the same parts as npm start, with two APIs and two workers', () => {
  expect(Object.keys(compose.services).sort()).toEqual([
    'api-1',
    'api-2',
    'migrate',
    'mock-channel',
    'postgres',
    'temporal',
    'temporal-schema',
    'temporal-ui',
    'worker-1',
    'worker-2',
  ]);
  // Debian's docker-compose 1.29 refuses the key.
  expect(compose.name).toBeUndefined();
});

test('every image is pinned to a whole version, or built here', () => {
  for (const [name, service] of services) {
    const image = service.image ?? '';
    expect([name, image]).toEqual([
      name,
      expect.stringMatching(/^[\w./-]+:\d+\.\d+(\.\d+)?(-\w+)?$/),
    ]);
    if (service.build === undefined) expect(image).not.toMatch(/^payment-saga:/);
    else expect(image).toBe(`payment-saga:${packageVersion()}`);
  }
  const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
  expect(bases).toEqual([expect.stringMatching(/^node:20\.\d+\.\d+-[\w-]+$/)]);
});

test('the image of the Temporal server is the version that everything else runs on', () => {
  const { image } = compose.services['temporal'] ?? {};
  expect(image).toBe('temporalio/server:1.32.0');
  expect(compose.services['temporal-schema']?.image).toBe('temporalio/admin-tools:1.32.0');
});

test('every file that is built, copied, mounted or run is there', () => {
  for (const [, service] of ours) {
    expect(service.build).toBe('.');
    const script = service.command?.[0] ?? '';
    expect([script, existsSync(join(root, script))]).toEqual([script, true]);
    // What is run has to be in the image.
    expect(dockerfile).toMatch(new RegExp(`^COPY ${script.split('/')[0]} `, 'm'));
  }
  const copied = [...dockerfile.matchAll(/^COPY (.+) \S+$/gm)].flatMap(([, from]) =>
    (from ?? '').split(' '),
  );
  expect(copied.length).toBeGreaterThan(10);
  const ignored = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n');
  for (const path of copied) {
    expect([path, existsSync(join(root, path))]).toEqual([path, true]);
    expect(ignored).not.toContain(path);
  }
  for (const [, service] of services) {
    for (const volume of service.volumes ?? []) {
      const [source = ''] = volume.split(':');
      if (source.startsWith('.')) {
        expect([source, existsSync(join(root, source))]).toEqual([source, true]);
      } else expect(Object.keys(compose.volumes ?? {})).toContain(source);
    }
  }
});

test('a script that a container runs is executable and mounted where it is called', () => {
  const schema = compose.services['temporal-schema'];
  const [host = '', inside = ''] = (schema?.volumes?.[0] ?? '').split(':');
  expect(schema?.entrypoint).toEqual(['/bin/sh', inside]);
  expect(statSync(join(root, host)).mode & 0o111).toBe(0o111);
});

test('ports are published on the loopback address, once each, and somebody listens behind them', () => {
  const taken = new Set<string>();
  for (const [name, service] of services) {
    for (const port of service.ports ?? []) {
      const [address, outside = '', inside] = port.split(':');
      expect(address).toBe('127.0.0.1');
      expect(taken).not.toContain(outside);
      taken.add(outside);
      expect([name, LISTENS[name]]).toEqual([name, expect.arrayContaining([Number(inside)])]);
    }
  }
  expect(taken.size).toBe(6);
});

test('every address inside names a service and a port at which it listens', () => {
  let checked = 0;
  for (const [name, service] of services) {
    for (const [variable, value] of Object.entries(service.environment ?? {})) {
      const address = /(?:^|\/\/|@)([a-z][a-z0-9-]*):(\d+)(?:\/|$)/.exec(value);
      if (address === null) continue;
      checked++;
      const [, host = '', port] = address;
      expect([name, variable, host, LISTENS[host]]).toEqual([
        name,
        variable,
        host,
        expect.arrayContaining([Number(port)]),
      ]);
    }
  }
  // Database and Temporal for five processes, Temporal for the UI, two gateways, two callbacks.
  expect(checked).toBe(15);
});

test('every variable has a value or a default', () => {
  for (const [, expression = ''] of text.matchAll(/\$\{([^}]*)\}/g)) {
    expect(expression).toMatch(/^[A-Z_]+:-.+$/);
  }
  for (const [name, service] of services) {
    for (const [variable, value] of Object.entries(service.environment ?? {})) {
      expect([name, variable, typeof value]).toEqual([name, variable, 'string']);
      expect(value).not.toBe('');
    }
  }
});

test('every variable of our processes is read by their code, and every secret the same for all', () => {
  const sources = ['api', 'worker', 'mock-channel', 'channels', 'db', 'scripts']
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) =>
        join(root, folder, file),
      ),
    )
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n');
  const values = new Map<string, string>();
  for (const [, service] of ours) {
    for (const [variable, value] of Object.entries(service.environment ?? {})) {
      expect([variable, new RegExp(`\\b${variable}\\b`).test(sources)]).toEqual([variable, true]);
      expect([variable, value]).toEqual([variable, values.get(variable) ?? value]);
      values.set(variable, value);
    }
  }
  expect(values.size).toBeGreaterThan(15);
});

test('every process that stays up has a health check that asks the port it listens at', () => {
  for (const [name, service] of services) {
    if (service.restart === 'on-failure' || name === 'temporal-ui') continue;
    const check = service.healthcheck;
    expect([name, check]).toEqual([
      name,
      { ...check, interval: expect.any(String), timeout: expect.any(String) },
    ]);
    expect(check?.retries).toBeGreaterThan(0);
    const asked = /127\.0\.0\.1:(\d+)|'-z'|pg_isready|nc/.exec((check?.test ?? []).join(' '));
    expect([name, asked]).toEqual([name, expect.anything()]);
    if (asked?.[1] !== undefined) expect(LISTENS[name]).toContain(Number(asked[1]));
  }
});

test('whoever is waited for is there and can become what is waited for', () => {
  for (const [name, service] of services) {
    for (const [target, { condition }] of Object.entries(service.depends_on ?? {})) {
      const other = compose.services[target];
      expect([name, target, other !== undefined]).toEqual([name, target, true]);
      if (condition === 'service_healthy') expect(other?.healthcheck).toBeDefined();
      else {
        expect(condition).toBe('service_completed_successfully');
        // A job that is started again whenever it ends never completes.
        expect(other?.restart).toBe('on-failure');
      }
    }
  }
  expect(Object.keys(compose.services['api-1']?.depends_on ?? {})).toEqual(['migrate']);
  expect(Object.keys(compose.services['worker-2']?.depends_on ?? {})).toEqual(['migrate']);
});

function packageVersion(): string {
  const json = readFileSync(join(root, 'package.json'), 'utf8');
  return (JSON.parse(json) as { version: string }).version;
}
