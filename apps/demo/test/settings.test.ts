import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

import { readSettings } from '../src/server/settings.ts'

test('[DM10] an empty environment gives the defaults', () => {
  expect(readSettings({})).toEqual({
    host: '127.0.0.1',
    port: 8000,
    allowedHosts: [],
    allowedOrigins: [],
    dataDir: fileURLToPath(new URL('../.data', import.meta.url)),
    model: 'gemini-2.5-flash',
    liveModel: 'gemini-2.5-flash-native-audio-preview-12-2025',
    geminiKey: undefined,
    prices: {},
    geminiBaseUrl: undefined,
    weatherKey: undefined,
    apiKey: undefined,
    approvalDeadlineMs: 600_000,
    reminderMs: 60_000,
  })
})

test('[DM10] an empty variable counts as unset', () => {
  expect(readSettings({ PORT: '', GOOGLE_API_KEY: ' ', API_KEY: '' })).toEqual(readSettings({}))
})

test('[DM140] allowed hosts are a comma-separated list of names, and HOST if it is a name', () => {
  const { allowedHosts } = readSettings({
    ALLOWED_HOSTS: 'a.example, .b.example:8443',
    HOST: 'box',
  })
  expect(allowedHosts).toEqual(['a.example', '.b.example:8443', 'box'])
})

test('[DM130] pages on other ports may be allowed, by origin', () => {
  const { allowedOrigins } = readSettings({
    ALLOWED_ORIGINS: 'http://localhost:3000, https://a.example',
  })
  expect(allowedOrigins).toEqual(['http://localhost:3000', 'https://a.example'])
  for (const wrong of ['*', 'localhost:3000', 'http://localhost:3000/', 'file:///tmp']) {
    expect(() => readSettings({ ALLOWED_ORIGINS: wrong })).toThrow(/^ALLOWED_ORIGINS is not a list/)
  }
})

test('[DM131] a short API key is accepted only if a variable allows it', () => {
  const API_KEY = 'dev-key-12345'
  expect(() => readSettings({ API_KEY })).toThrow('DEMO_ALLOW_SHORT_API_KEY=1')
  expect(readSettings({ API_KEY, DEMO_ALLOW_SHORT_API_KEY: '1' }).apiKey).toBe(API_KEY)
})

test('[DM10] either name of the Gemini key is read, and GOOGLE_API_KEY takes precedence', () => {
  expect(readSettings({ GEMINI_API_KEY: 'b' }).geminiKey).toBe('b')
  expect(readSettings({ GEMINI_API_KEY: 'b', GOOGLE_API_KEY: 'a' }).geminiKey).toBe('a')
})

test.each([
  ['PORT', '80x', /^PORT is not a port\. Set it to a whole number/],
  ['PORT', '-1', /^PORT is not a port/],
  ['PORT', '65536', /^PORT is not a port/],
  ['PORT', '0x10', /^PORT is not a port/],
  ['PORT', '8000.5', /^PORT is not a port/],
  ['HOST', 'http://localhost', /^HOST is not a host name or address/],
  ['ALLOWED_HOSTS', 'https://chat.example.com', /^ALLOWED_HOSTS is not a list of host names/],
  ['GEMINI_MODEL', '../secrets', /^GEMINI_MODEL is not the name of a model/],
  ['GOOGLE_GEMINI_BASE_URL', 'localhost:9', /^GOOGLE_GEMINI_BASE_URL is not an http or https URL/],
  ['DEMO_APPROVAL_DEADLINE_MS', '0', /^DEMO_APPROVAL_DEADLINE_MS is not a time in milliseconds/],
  ['DEMO_APPROVAL_DEADLINE_MS', '10m', /^DEMO_APPROVAL_DEADLINE_MS is not a time/],
  ['DEMO_LEASE_MS', '10', /^DEMO_LEASE_MS is not a time of at least 1000 milliseconds/],
  ['API_KEY', 'short', /^API_KEY is too short to be a secret/],
  ['GOOGLE_API_KEY', 'AIza with spaces', /^GOOGLE_API_KEY does not look like a key/],
  ['OPENWEATHER_API_KEY', '鍵', /^OPENWEATHER_API_KEY does not look like a key/],
])('[DM11] %s=%s is rejected with one sentence', (name, value, sentence) => {
  expect(() => readSettings({ [name]: value })).toThrow(sentence)
})

test.each(['GOOGLE_API_KEY', 'GEMINI_API_KEY', 'OPENWEATHER_API_KEY', 'API_KEY'])(
  '[DM11] the error for %s does not repeat its value',
  (name) => {
    expect(() => readSettings({ [name]: 'secret value' })).toThrow(/^(?!.*secret value)/)
  },
)

test('[IN381] the prices of models are read per million tokens', () => {
  const { prices } = readSettings({ MODEL_PRICES: 'gemini-2.5-flash=0.30/2.50, other=1/2' })
  expect(prices).toEqual({
    'gemini-2.5-flash': { input: 0.3, output: 2.5 },
    other: { input: 1, output: 2 },
  })
})
