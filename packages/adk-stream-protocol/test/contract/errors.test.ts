import { describe, expect, test } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import { assistant, EmulatedGemini, weather } from '../support/agents.ts'
import { clients } from '../support/clients.ts'
import { serve } from '../support/serve.ts'

interface Failure {
  readonly name: string
  readonly script: string
  readonly code: string
  /** The text before the error, which stays. */
  readonly kept: string
}

const failures: readonly Failure[] = [
  { name: '429', script: '[[fail 429 Quota]]', code: 'model-rate-limited', kept: '' },
  { name: '500', script: '[[fail 500 Oops]]', code: 'model-unavailable', kept: '' },
  { name: '503', script: '[[fail 503 Busy]]', code: 'model-overloaded', kept: '' },
  { name: '400', script: '[[fail 400 Bad]]', code: 'model-refused', kept: '' },
  {
    name: '503 in the middle of a reply',
    script: '[[say Half an]][[fail 503 Busy]]',
    code: 'model-overloaded',
    kept: 'Half an',
  },
  {
    name: 'a cut connection',
    script: '[[say Half an]][[drop]]',
    code: 'model-interrupted',
    kept: 'Half an',
  },
  { name: 'a blocked prompt', script: '[[block SAFETY]]', code: 'model-blocked', kept: '' },
  {
    name: 'a prompt that is blocked after some text',
    script: '[[say Half an]][[call get_weather {"place":"Kyoto"}]][[then]][[block SAFETY]]',
    code: 'model-blocked',
    kept: 'Half an',
  },
  {
    name: 'a rejected key',
    script: '[[fail 400 API key not valid. Please pass a valid API key.]]',
    code: 'model-access-denied',
    kept: '',
  },
  { name: '403', script: '[[fail 403]]', code: 'model-access-denied', kept: '' },
  {
    name: 'a prompt that is blocked without usage',
    script: '[[raw {"promptFeedback":{"blockReason":"SAFETY"}}]]',
    code: 'model-mistake',
    kept: '',
  },
  {
    name: 'a prompt that is blocked without usage, after some text',
    script:
      '[[say Half an]][[call get_weather {"place":"Kyoto"}]][[then]][[raw {"promptFeedback":{"blockReason":"SAFETY"}}]]',
    code: 'model-mistake',
    kept: 'Half an',
  },
  { name: 'an empty reply', script: '[[finish STOP]]', code: 'model-mistake', kept: '' },
  {
    name: 'an empty reply without usage',
    script: '[[raw {"candidates":[{"finishReason":"STOP"}]}]]',
    code: 'model-mistake',
    kept: '',
  },
  {
    name: 'a call that the model wrote wrongly',
    script: '[[finish MALFORMED_FUNCTION_CALL]]',
    code: 'model-mistake',
    kept: '',
  },
  {
    name: 'a call that the model wrote wrongly after another one',
    script:
      '[[say Half an]][[call get_weather {"place":"Kyoto"}]][[then]][[finish MALFORMED_FUNCTION_CALL]]',
    code: 'model-mistake',
    kept: 'Half an',
  },
  {
    name: 'a reply that is filtered before its first word',
    script: '[[finish SAFETY]]',
    code: 'model-blocked',
    kept: '',
  },
]

describe.each(oneOf(clients, 'ai 7'))('$name', (client) => {
  test.each(failures)('[ER2] $name is reported once, as $code', async ({ script, code, kept }) => {
    await using server = await serve({ agent: (model) => assistant(model, { tools: [weather] }) })
    const browser = server.browser()
    const chat = browser.openChat(client)
    await chat.send(script)
    expect(chat.status).toBe('error')
    expect(chat.lastMessage?.metadata).toMatchObject({ error: { code } })
    expect(chat.text).toBe(kept)
    expect(server.reported.filter(({ chunk }) => chunk.type === 'error')).toHaveLength(1)
    await client.validateMessages(chat.messages)
    await chat.send('[[say Fine again.]]')
    expect(chat.text).toBe('Fine again.')
    const { messages } = await browser.messages()
    expect(messages.map(({ id, parts }) => ({ id, parts }))).toEqual(
      chat.messages.map(({ id, parts }) => ({ id, parts })),
    )
    expect(messages[1]?.metadata).toEqual(chat.messages[1]?.metadata)
  })

  test('[ER2] a quota error contains the retry delay', async () => {
    await using server = await serve()
    const chat = server.browser().openChat(client)
    await chat.send('[[fail 429 retry=33.4]]')
    expect(chat.lastMessage?.metadata).toMatchObject({
      error: { code: 'model-rate-limited', retryAfterSeconds: 34 },
    })
  })

  test('[ER1080] a rejected key is reported with what to do', async () => {
    await using server = await serve()
    await server.browser().openChat(client).send('[[fail 400 API key not valid.]]')
    expect(String(server.errors[0])).toContain('Check GOOGLE_API_KEY and restart.')
  })

  test('[ER2] a model that cannot be reached is reported as model-unavailable', async () => {
    await using server = await serve({
      agent: () => assistant(new EmulatedGemini('http://127.0.0.1:1')),
    })
    const chat = server.browser().openChat(client)
    await chat.send('Hello')
    expect(chat.lastMessage?.metadata).toMatchObject({ error: { code: 'model-unavailable' } })
    expect(server.errors).not.toHaveLength(0)
  })

  test.each([
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'content-filter'],
    ['RECITATION', 'content-filter'],
    ['MALFORMED_FUNCTION_CALL', 'error'],
    ['MALFORMED_RESPONSE', 'error'],
    ['MODEL_ARMOR', 'content-filter'],
    ['A_REASON_OF_NEXT_YEAR', 'other'],
  ])(
    '[MP11] %s after some text keeps the text and is not an error',
    async (reason, finishReason) => {
      await using server = await serve()
      const browser = server.browser()
      const chat = browser.openChat(client)
      await chat.send(`[[say As far as]][[finish ${reason}]]`)
      expect(chat.status).toBe('ready')
      expect(chat.text).toBe('As far as')
      expect(server.reported.at(-1)?.chunk).toMatchObject({ type: 'finish', finishReason })
      expect(chat.lastMessage?.metadata).toMatchObject({ finishReason })
      expect((await browser.messages()).messages).toEqual(chat.messages)
      await chat.send('[[say Next.]]')
      expect(chat.text).toBe('Next.')
    },
  )
})
