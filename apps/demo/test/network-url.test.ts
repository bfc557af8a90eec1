import { expect, test } from 'vitest'

import { findNetworkUrl } from '../src/server/network-url.ts'

const LOOPBACK = [
  { address: '127.0.0.1', family: 'IPv4', internal: true },
  { address: '::1', family: 'IPv6', internal: true },
] as const
const WIFI = [
  { address: 'fe80::1', family: 'IPv6', internal: false },
  { address: '192.168.1.5', family: 'IPv4', internal: false },
] as const
const DOCKER = [{ address: '172.17.0.1', family: 'IPv4', internal: false }] as const
const UNCONFIGURED = [{ address: '169.254.3.4', family: 'IPv4', internal: false }] as const

test.each([
  ['the address of the network', '0.0.0.0', { lo: LOOPBACK, wlan0: WIFI }, '192.168.1.5'],
  ['IPv6', '::', { lo: LOOPBACK, wlan0: WIFI }, '192.168.1.5'],
  ['Docker beside it', '0.0.0.0', { docker0: DOCKER, en0: WIFI }, '192.168.1.5'],
  ['Docker alone', '0.0.0.0', { lo: LOOPBACK, docker0: DOCKER }, '172.17.0.1'],
  ['no network', '0.0.0.0', { lo: LOOPBACK }, undefined],
  ['a network without addresses', '0.0.0.0', { lo: LOOPBACK, en0: UNCONFIGURED }, undefined],
  ['this machine only', '127.0.0.1', { lo: LOOPBACK, wlan0: WIFI }, undefined],
  ['one address', '192.168.1.5', { lo: LOOPBACK, wlan0: WIFI }, undefined],
])('[DM1142] the URL for other devices: %s', (_name, host, interfaces, address) => {
  const url = findNetworkUrl({ host, port: '8000' }, interfaces)
  expect(url).toBe(address && `http://${address}:8000`)
})
