import { createEvent, InMemorySessionService, Runner } from '@google/adk'
import { describe, expect, test } from 'vitest'

import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { assistant, EmulatedGemini, weather } from '../support/agents.ts'
import { codeOf } from '../support/browser.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { takeTurns } from '../../../../test/support/take-turns.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { clients } from '../support/clients.ts'
import { serve, type ServeOptions } from '../support/serve.ts'

const withWeather: ServeOptions = { agent: (model) => assistant(model, { tools: [weather] }) }
const CALL = '[[call get_weather {"place":"東京"}]]'

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it('[CV1] the stored messages equal the streamed ones', async () => {
    await using server = await serve({
      agent: (model) =>
        assistant(model, {
          tools: [weather],
          generateContentConfig: { thinkingConfig: { includeThoughts: true } },
        }),
    })
    const browser = server.browser()
    const chat = browser.openChat(client)
    await chat.send(
      `[[think Hm.]][[say 調べます。]]${CALL}${CALL}[[then]][[say 18°.]][[image red]]`,
    )
    await chat.send('[[code print(1) => 1]][[say One.]][[ground https://example.com/a A]]')
    await chat.send('[[say Half.]][[finish MAX_TOKENS]]')
    const { messages, running } = await browser.messages()
    expect(running).toBe(false)
    expect(messages).toEqual(chat.messages)
    await client.validateMessages(messages)
  })

  it('[RQ9] regenerate() replaces the reply with another one', async () => {
    await using server = await serve(withWeather)
    const browser = server.browser()
    const chat = browser.openChat(client)
    await chat.send('[[say Before.]]')
    await chat.send(`${CALL}[[then]][[say Answer.]]`)
    const replaced = chat.lastMessage?.id
    await chat.regenerate()
    expect(chat.status).toBe('ready')
    expect(chat.messages).toHaveLength(4)
    expect(chat.text).toBe('Answer.')
    expect(chat.lastMessage?.id).not.toBe(replaced)
    expect((await browser.messages()).messages).toEqual(chat.messages)
    // The request to the model does not contain the first reply.
    const bodies = server.emulator.requests.map(({ body }) => JSON.stringify(body))
    expect(bodies[3]).toBe(bodies[1])
  })

  it('[RQ9] an edited message replaces the old one and everything after it', async () => {
    await using server = await serve()
    const browser = server.browser()
    const chat = browser.openChat(client)
    await chat.send('[[say First.]]')
    await chat.send('[[say Second.]]')
    const edited = chat.messages[0]?.id ?? ''
    await chat.send('[[say Changed.]]', { messageId: edited })
    expect(chat.messages.map(textOf)).toEqual(['[[say Changed.]]', 'Changed.'])
    expect((await browser.messages()).messages).toEqual(chat.messages)
    expect(JSON.stringify(server.emulator.requests.at(-1)?.body)).not.toMatch(/First|Second/)
  })

  it('[RQ9] regenerate() after an error runs the turn again', async () => {
    await using server = await serve()
    const browser = server.browser()
    const chat = browser.openChat(client)
    await chat.send('[[say Half.]][[fail 503 Busy]]')
    expect(chat.status).toBe('error')
    await chat.regenerate()
    expect(chat.messages).toHaveLength(2)
    expect((await browser.messages()).messages).toHaveLength(2)
    expect(server.emulator.requests).toHaveLength(2)
  })

  it('[CV1] a restart on the same file shows the same messages to the same browser', async () => {
    await using folder = await temporaryDirectory()
    const path = folder.file('chats.db')
    await using store = await openSqliteStore({ path })
    const first = await serve({ ...withWeather, store })
    const browser = first.browser()
    const chat = browser.openChat(client)
    await chat.send(`${CALL}[[then]][[say 18°.]]`)
    await first[Symbol.asyncDispose]()
    await store.close()

    await using reopened = await openSqliteStore({ path })
    await using second = await serve({ ...withWeather, store: reopened })
    const later = second.browser()
    later.cookie = browser.cookie
    const page = await later.reload(client)
    expect(page.messages).toEqual(chat.messages)
    await page.send('[[say And on.]]')
    expect(page.text).toBe('And on.')
    expect(JSON.stringify(second.emulator.requests[0]?.body)).toContain('celsius')
  })

  it('[CV3] another session service can replace that of the store, without rewinding', async () => {
    await using server = await serve({
      ...withWeather,
      sessionService: new InMemorySessionService(),
    })
    const browser = server.browser()
    const chat = browser.openChat(client)
    await chat.send(`${CALL}[[then]][[say 18°.]]`)
    await chat.send('[[say Next.]]')
    expect((await browser.messages()).messages).toEqual(chat.messages)
    await chat.regenerate()
    expect(chat.status).toBe('error')
    expect(chat.error?.message).toContain('not-rewindable')
    const answer = await browser.say('[[say Still fine.]]')
    expect(await answer.text()).toContain('Still ')
  })

  it('[CV3] a session that plain ADK wrote is read and continued', async () => {
    const sessionService = new InMemorySessionService()
    await using server = await serve({
      ...withWeather,
      sessionService,
      appName: 'elsewhere',
      authenticate: () => ({ id: 'hanako' }),
    })
    const agent = assistant(new EmulatedGemini(server.emulator.baseUrl), { tools: [weather] })
    const runner = new Runner({ agent, appName: 'elsewhere', sessionService })
    const key = { appName: 'elsewhere', userId: 'hanako', sessionId: 'chat-1' }
    await sessionService.createSession(key)
    const newMessage = { role: 'user', parts: [{ text: `${CALL}[[then]][[say Plain.]]` }] }
    for await (const { author } of runner.runAsync({ ...key, newMessage })) {
      expect(author).toBe('assistant')
    }
    const page = await server.browser().reload(client)
    expect(page.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
    expect(textOf(page.lastMessage)).toBe('Plain.')
    expect(toolParts(page.lastMessage)).toMatchObject([{ state: 'output-available' }])
    await client.validateMessages(page.messages)
    await page.send('[[say Continued.]]')
    expect(page.text).toBe('Continued.')
  })

  it('[TU9] a call without a result after a crash gets a response before the model is called', async () => {
    const sessionService = new InMemorySessionService()
    const key = { appName: 'adk-stream-protocol', userId: 'hanako', sessionId: 'chat-1' }
    const session = await sessionService.createSession(key)
    const said = [
      { author: 'user', content: { role: 'user', parts: [{ text: 'Weather?' }] } },
      {
        author: 'assistant',
        content: {
          role: 'model',
          parts: [
            { functionCall: { id: 'c1', name: 'get_weather', args: { place: 'A' } } },
            { functionCall: { id: 'c2', name: 'get_weather', args: { place: 'B' } } },
          ],
        },
      },
    ]
    for (const fields of said) {
      const event = createEvent({ invocationId: 'i1', ...fields })
      await sessionService.appendEvent({ session, event })
    }
    await using server = await serve({
      ...withWeather,
      sessionService,
      authenticate: () => ({ id: 'hanako' }),
    })
    const chat = await server.browser().reload(client)
    await chat.send('[[say On we go.]]')
    // Gemini, and its emulator, refuse a conversation with an unanswered call.
    expect(chat.text).toBe('On we go.')
    const { messages } = await server.browser().messages()
    expect(toolParts(messages[1])).toMatchObject([
      { state: 'output-error' },
      { state: 'output-error' },
    ])
    await client.validateMessages(messages)
  })
})

test('[RQ7] the earlier request body with string content gets a reply', async () => {
  await using server = await serve()
  const browser = server.browser()
  const response = await browser.post('/stream', {
    chatId: 'old-1',
    messages: [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello' },
      { role: 'user', content: '[[say やあ。]]' },
    ],
  })
  expect(await response.text()).toContain('やあ。'.slice(0, 1))
  expect((await browser.messages('old-1')).messages.map(textOf)).toEqual([
    '[[say やあ。]]',
    'やあ。',
  ])
})

test('[RQ7] a message without an id is a new one, on any session service', async () => {
  await using server = await serve({ sessionService: new InMemorySessionService() })
  const messages = [{ role: 'user', content: '[[say Hello.]]' }]
  const response = await server.browser().post('/stream', { chatId: 'old-1', messages })
  expect(response.status).toBe(200)
  expect(await response.text()).toContain('Hello.')
})

test('[CV4] an unknown chat has no messages, and can be deleted without an error', async () => {
  await using server = await serve()
  const browser = server.browser()
  expect(await browser.messages('never')).toEqual({
    chatId: 'never',
    messages: [],
    running: false,
    position: '0.',
  })
  expect((await browser.delete('never')).status).toBe(204)
  expect((await browser.stop('never')).status).toBe(204)
})

test('[RQ9] regenerating a message that was never stored sends it', async () => {
  await using server = await serve()
  const browser = server.browser()
  const messages = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: '[[say Fine.]]' }] }]
  const body = { id: 'chat-1', messages, trigger: 'regenerate-message' }
  const response = await browser.post('/stream', body)
  expect(response.status).toBe(200)
  await response.text()
  expect((await browser.messages()).messages).toHaveLength(2)
  const unknown = await browser.post('/stream', { ...body, trigger: 'whatever' })
  expect(await codeOf(unknown)).toBe('bad-request')
})
