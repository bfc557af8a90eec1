import { LlmAgent } from '@google/adk'
import { describe, expect, test } from 'vitest'

import { readErrorMessage } from '../../src/client/index.ts'
import { createBridge, ProtocolError } from '../../src/server/index.ts'
import { clients } from '../support/clients.ts'

const agent = new LlmAgent({ name: 'assistant', model: 'gemini-2.5-flash' })

describe.each(clients)('$name', (client) => {
  test('[CL151] a rejection that a stock chat stores as JSON is shown as its sentence', async () => {
    await using bridge = createBridge({ agent, authenticate: () => undefined })
    const fetch: typeof globalThis.fetch = (input, init) => bridge.fetch(new Request(input, init))
    const chat = client.openChat({ id: 'chat', api: 'http://bridge/stream', fetch })
    await chat.send('Hello')
    expect(chat.error?.message).toContain('"error"')
    expect(readErrorMessage(chat.error)).toBe(new ProtocolError('unauthenticated').message)
  })
})

test.each([
  ['an error with a sentence', new Error('Too late.'), 'Too late.'],
  ['JSON of another server', new Error('{"error":"no"}'), '{"error":"no"}'],
  ['a proxy’s page', new Error('<html>'), '<html>'],
  ['something that is no error', 'gone', 'gone'],
])('[CL151] %s is shown unchanged', (_name, error, message) => {
  expect(readErrorMessage(error)).toBe(message)
})
