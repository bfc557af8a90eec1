import { describe, expect, test } from 'vitest'

import { apiKey } from '../../src/server/auth/authenticate.ts'
import { codeOf } from '../support/browser.ts'
import { answer, ask, locate, TOKYO } from '../support/locating.ts'
import { toolParts } from '../support/chat-probe.ts'
import { serve } from '../support/serve.ts'
import { readFrames } from '../support/wire-rules.ts'

/** What docs/recipes/moving-from-python.md says of clients over HTTP. Text frames are in `bidi`, answers in `dialects.test.ts`. */
describe('a client of the earlier system over HTTP', () => {
  test('[RQ7] gets an error that says to send a chat id', async () => {
    await using server = await serve()
    const response = await server.browser().post('/stream', {
      messages: [{ role: 'user', content: 'Hello' }],
    })
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('needs a chat id in `id` (or `chatId`)')
  })

  test('[RQ7] sends its whole history without ids', async () => {
    await using server = await serve()
    const browser = server.browser()
    const history = [
      { role: 'user', content: '[[say One.]]' },
      { role: 'assistant', content: 'One.' },
      { role: 'user', content: '[[say Two.]]' },
    ]
    for (const count of [1, 3]) {
      const body = { chatId: 'chat-1', messages: history.slice(0, count) }
      await (await browser.post('/stream', body)).text()
    }
    const { messages } = await browser.messages()
    expect(messages.map(({ parts }) => parts.at(-1)?.text)).toEqual([
      '[[say One.]]',
      'One.',
      '[[say Two.]]',
      'Two.',
    ])
  })

  test('[SE3] of a page on another port is rejected until its origin is allowed', async () => {
    const origin = 'http://localhost:3000'
    const body = { chatId: 'c', messages: [{ role: 'user', content: '[[say Hello.]]' }] }
    await using closed = await serve()
    const refused = await closed.browser().post('/stream', body, { origin })
    expect([refused.status, await codeOf(refused)]).toEqual([403, 'forbidden-origin'])
    await using open = await serve({ allowedOrigins: [origin] })
    const taken = await open.browser().post('/stream', body, { origin })
    expect(await taken.text()).toContain('Hello.')
    expect(taken.headers.get('access-control-allow-origin')).toBe(origin)
  })

  test('[SE4] sends a key of any length', async () => {
    await using server = await serve({ authenticate: apiKey({ 'dev-key-12345': 'hanako' }) })
    const body = { chatId: 'c', messages: [{ role: 'user', content: '[[say Hello.]]' }] }
    const headers = { 'x-api-key': 'dev-key-12345' }
    expect(await (await server.browser().post('/stream', body, headers)).text()).toContain('Hello.')
    expect((await server.browser().post('/stream', body)).status).toBe(401)
  })

  test('[SE1] that does not keep the cookie is another person in every request', async () => {
    await using server = await serve()
    await (await server.browser().say('[[say Hello.]]')).text()
    expect((await server.browser().messages()).messages).toEqual([])
  })

  test('[RQ4] sends pictures as files', async () => {
    await using server = await serve()
    const parts = [{ type: 'image', image: 'AAAA', mimeType: 'image/png' }]
    const response = await server.browser().post('/stream', {
      chatId: 'c',
      messages: [{ role: 'user', content: parts }],
    })
    expect(await response.text()).toContain('cannot contain a part of type \\"image\\"')
  })

  test('[BT1] sends the output of a browser tool as a tool-result', async () => {
    await using server = await serve(locate())
    const browser = server.browser()
    const [part] = toolParts(await ask(browser))
    const result = { type: 'tool-result', toolCallId: part?.toolCallId, result: TOKYO }
    const response = await browser.post('/stream', {
      chatId: 'chat-1',
      messages: [{ role: 'user', content: [result] }],
    })
    expect(readFrames(await response.text()).chunks.map(({ type }) => type)).toContain(
      'tool-output-available',
    )
  })

  test('[AP130] that repeats a decision receives the outcome of the first one, or is rejected', async () => {
    await using server = await serve(locate())
    const browser = server.browser()
    const asked = await ask(browser)
    const output = { state: 'output-available', output: TOKYO }
    await (await answer(browser, asked, output)).text()
    const again = readFrames(await (await answer(browser, asked, output)).text()).chunks
    expect(again.map(({ type }) => type)).toContain('tool-output-available')
    const unknown = { ...output, toolCallId: 'no-such-call' }
    const refused = await answer(browser, asked, unknown)
    expect([refused.status, await codeOf(refused)]).toEqual([409, 'nothing-new'])
  })

  test('[CV4] deletes a chat instead of all sessions', async () => {
    await using server = await serve()
    const browser = server.browser()
    await (await browser.say('[[say Hello.]]')).text()
    const cleared = await browser.post('/clear-sessions', {})
    expect([cleared.status, await codeOf(cleared)]).toEqual([404, 'not-found'])
    expect((await browser.delete()).status).toBe(204)
    expect((await browser.messages()).messages).toEqual([])
  })

  test('[ER2] receives errors of the model as `error`, with the code in the metadata', async () => {
    await using server = await serve()
    const response = await server.browser().say('[[fail 429]]')
    const { chunks } = readFrames(await response.text())
    expect(chunks.find(({ type }) => type === 'message-metadata')).toMatchObject({
      messageMetadata: { error: { code: 'model-rate-limited' } },
    })
    expect(chunks.map(({ type }) => type)).toContain('error')
  })

  test('[SS2] receives Japanese text as UTF-8', async () => {
    await using server = await serve()
    const text = await (await server.browser().say('[[say こんにちは]]')).text()
    const deltas = readFrames(text).chunks.map(({ delta }) => delta ?? '')
    expect(deltas.join('')).toBe('こんにちは')
    expect(text).not.toContain('\\u')
  })

  test('[CH7] reads the usage from the metadata of `finish`', async () => {
    await using server = await serve()
    const { chunks } = readFrames(await (await server.browser().say('[[say Hello.]]')).text())
    expect(chunks.at(-1)).toMatchObject({
      type: 'finish',
      messageMetadata: {
        usage: {
          inputTokens: expect.any(Number) as unknown,
          outputTokens: expect.any(Number) as unknown,
          totalTokens: expect.any(Number) as unknown,
        },
      },
    })
    // The names of the earlier server.
    for (const name of ['promptTokens', 'completionTokens', 'modelVersion', 'metadata'])
      expect(JSON.stringify(chunks.at(-1))).not.toContain(`"${name}"`)
  })
})
