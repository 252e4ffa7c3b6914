import { mayNotify } from '../../worker/notify-guard';

describe('addresses that a merchant may name', () => {
  it.each([
    'http://127.0.0.1/x',
    'http://127.9.9.9:8080/x',
    'http://[::1]/x',
    'http://[::ffff:127.0.0.1]/x',
    'http://[64:ff9b::a9fe:a9fe]/x',
    'http://10.1.2.3/x',
    'http://172.31.0.1/x',
    'http://192.168.1.1/x',
    'http://169.254.169.254/latest/meta-data',
    'http://100.64.0.1/x',
    'http://0.0.0.0/x',
    'http://[fd00::1]/x',
    'http://[fe80::1]/x',
    'http://localhost/x',
    'http://2130706433/x',
    'ftp://example.com/x',
    'file:///etc/passwd',
  ])('refuses %s', async (address) => {
    expect(await mayNotify(new URL(address), [])).toBe(false);
  });

  it.each([
    'http://93.184.216.34/x',
    'https://93.184.216.34:8443/x',
    'http://[2606:2800:220:1::1]/',
  ])('allows %s', async (address) => {
    expect(await mayNotify(new URL(address), [])).toBe(true);
  });

  it('allows a private host that the configuration names, and only that', async () => {
    expect(await mayNotify(new URL('http://127.0.0.1:9/x'), ['127.0.0.1'])).toBe(true);
    expect(await mayNotify(new URL('http://127.0.0.1:9/x'), ['127.0.0.1:9'])).toBe(true);
    expect(await mayNotify(new URL('http://127.0.0.1:8/x'), ['127.0.0.1:9'])).toBe(false);
  });
});
