import { describe, expect, test } from 'vitest'

import { assistant } from '../support/agents.ts'
import { partTypes, textOf } from '../support/chat-probe.ts'
import { clients } from '../support/clients.ts'
import { hosts } from '../support/hosts.ts'
import { bytewise, postBytewise } from '../support/split-bytes.ts'
import { serve } from '../support/serve.ts'
import { findFaults, readFrames } from '../support/wire-rules.ts'

const RED_DOT =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='

describe.each(clients)('$name', (client) => {
  test('[MP1] text arrives piece by piece, while the model is still writing', async () => {
    await using server = await serve()
    const chat = server.browser().openChat(client)
    const answer = chat.send('[[say One two.]][[wait a]][[say Three.]][[wait b]][[say Four.]]')
    await chat.untilShown('One two.')
    expect(chat.status).toBe('streaming')
    server.emulator.release('a')
    await chat.untilShown('One two.Three.')
    expect(chat.status).toBe('streaming')
    server.emulator.release('b')
    await answer
    expect(chat.status).toBe('ready')
    expect(chat.text).toBe('One two.Three.Four.')
    expect(chat.shown.length).toBeGreaterThanOrEqual(4)
    expect(partTypes(chat.lastMessage)).toEqual(['step-start', 'text'])
    await client.validateMessages(chat.messages)
  })

  test('[MP2] thoughts of the model become reasoning before the text', async () => {
    await using server = await serve({
      agent: (model) =>
        assistant(model, {
          generateContentConfig: { thinkingConfig: { includeThoughts: true } },
        }),
    })
    const chat = server.browser().openChat(client)
    await chat.send('[[think 考え中… hm.]][[say Done.]]')
    expect(chat.lastMessage?.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'reasoning', text: '考え中… hm.', state: 'done' },
      { type: 'text', text: 'Done.', state: 'done' },
    ])
    await client.validateMessages(chat.messages)
  })

  test('[SS2] every character arrives intact, wherever the network splits the bytes', async () => {
    await using server = await serve()
    const browser = server.browser()
    const chat = client.openChat({
      id: 'chat-1',
      api: `${server.url}/stream`,
      fetch: bytewise(browser.fetch),
    })
    const said = 'こんにちは、世界！👩‍👩‍👧‍👦 é 𠮷野家'
    await chat.send(`[[say ${said}]]`)
    expect(chat.text).toBe(said)
    expect(chat.status).toBe('ready')
  })

  test('[MP4] an image from the model is a file part', async () => {
    await using server = await serve()
    const chat = server.browser().openChat(client)
    await chat.send('[[say Here.]][[image red]]')
    expect(chat.lastMessage?.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'text', text: 'Here.' },
      {
        type: 'file',
        mediaType: 'image/png',
        url: expect.stringMatching(/^data:image\/png;base64,/) as unknown,
      },
    ])
    await client.validateMessages(chat.messages)
  })

  test('[RQ5] a file from the user reaches the model unchanged', async () => {
    await using server = await serve()
    const browser = server.browser()
    const chat = browser.openChat(client)
    const url = `data:image/png;base64,${RED_DOT}`
    await chat.send('[[say Seen.]]', {
      files: [{ type: 'file', mediaType: 'image/png', url, filename: '赤.png' }],
    })
    expect(chat.text).toBe('Seen.')
    expect(JSON.stringify(server.emulator.requests[0]?.body)).toContain(RED_DOT)
    const { messages } = await browser.messages()
    expect(messages[0]?.parts).toContainEqual({
      type: 'file',
      mediaType: 'image/png',
      url,
      filename: '赤.png',
    })
    await client.validateMessages(messages)
  })

  test('[MP5] [MP6] code, its result and sources are parts of the message', async () => {
    await using server = await serve()
    const chat = server.browser().openChat(client)
    await chat.send('[[code print(1) => 1]][[say It is one.]][[ground https://example.com/a A]]')
    expect(partTypes(chat.lastMessage)).toEqual([
      'step-start',
      'data-executable-code',
      'data-code-execution-result',
      'text',
      'source-url',
      'data-grounding',
    ])
    await client.validateMessages(chat.messages)
  })

  test('[CH7] usage and finish reason come with the message', async () => {
    await using server = await serve()
    const chat = server.browser().openChat(client)
    await chat.send('[[say One two three.]]')
    expect(chat.lastMessage?.metadata).toMatchObject({
      usage: {
        inputTokens: expect.any(Number) as unknown,
        outputTokens: expect.any(Number) as unknown,
        totalTokens: expect.any(Number) as unknown,
      },
    })
    expect(server.reported.at(-1)?.chunk).toMatchObject({ type: 'finish', finishReason: 'stop' })
  })
})

test('[SS1] a stream has the headers of the AI SDK and ends with [DONE]', async () => {
  await using server = await serve()
  const response = await server.browser().say('[[say Hello.]]')
  expect(response.status).toBe(200)
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'text/event-stream',
    'x-vercel-ai-ui-message-stream': 'v1',
    'cache-control': 'no-cache',
    'x-accel-buffering': 'no',
  })
  expect(await response.text()).toMatch(/^data: \{"type":"start".*\ndata: \[DONE\]\n\n$/s)
})

test('[SS3] an idle stream gets keep-alive comments', async () => {
  await using server = await serve({ limits: { keepAliveMs: 5 } })
  const response = await server.browser().say('[[say One.]][[wait gate]][[say Two.]]')
  let body = ''
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    body += piece
    if (body.includes(': keep-alive\n\n: keep-alive\n\n')) server.emulator.release('gate')
  }
  const { chunks, done } = readFrames(body)
  expect(done).toBe(true)
  expect(chunks.filter(({ type }) => type === 'text-delta').map(({ delta }) => delta)).toEqual([
    'One.',
    'Two.',
  ])
})

test.each(hosts)(
  '[SS3] a stream for a client that asks for positions begins with its keep-alive interval, $name',
  async (host) => {
    await using server = await serve({ host, limits: { keepAliveMs: 7_000 } })
    const [asked, plain] = await Promise.all(
      [true, false].map(async (positions) => {
        const chatId = `chat-${positions}`
        return (await server.browser().say('[[say One.]]', chatId, { positions })).text()
      }),
    )
    expect(asked).toMatch(/^: keep-alive 7000\n\nid: \S+\ndata: /)
    expect(plain).toMatch(/^data: /)
  },
)

test('[OB1] onChunk receives the chunks that the client receives, with their turn', async () => {
  await using server = await serve({ authenticate: () => ({ id: 'hanako' }) })
  const body = await (await server.browser().say('[[say One two.]]', 'chat-9')).text()
  const { chunks } = readFrames(body)
  expect(server.reported.map(({ chunk }) => chunk)).toEqual(chunks)
  const messageId = chunks[0]?.['messageId']
  expect(new Set(server.reported.map(({ turn }) => JSON.stringify(turn)))).toEqual(
    new Set([JSON.stringify({ principalId: 'hanako', chatId: 'chat-9', messageId })]),
  )
})

test('[RQ1] a request body that arrives byte by byte is read completely', async () => {
  await using server = await serve()
  const text = '[[say 受け取りました。]] 絵文字👍🏽も'
  const message = { role: 'user', parts: [{ type: 'text', text }] }
  const answer = await postBytewise(`${server.url}/stream`, { id: 'c', messages: [message] })
  expect(answer).toContain('HTTP/1.1 200')
  // The client asked to close the connection. A client that waits for the close would hang otherwise.
  expect(answer).toMatch(/^connection: close\r$/im)
  expect(JSON.stringify(server.emulator.requests[0]?.body)).toContain('絵文字👍🏽も')
})

test('[CH1] the checker of the stream finds each violation', async () => {
  const start = { type: 'start', messageId: 'm' }
  expect(await findFaults([start, { type: 'finish', finishReason: 'stop' }], true)).toEqual([])
  const broken = [
    [{ ...start, extra: 1 }],
    [start, { type: 'text-delta', id: 't', delta: 'x' }],
    [start, { type: 'start-step' }, { type: 'text-start', id: 't' }, { type: 'finish-step' }],
    [start, { type: 'tool-output-available', toolCallId: 'c', output: 1 }],
    [start, { type: 'finish', finishReason: 'whatever' }],
    [start, { type: 'reset-step' }],
    [{ type: 'start-step' }],
  ]
  for (const chunks of broken) expect(await findFaults(chunks, true)).not.toEqual([])
  expect(readFrames('data: {"a":\n1}\n\n').faults).toHaveLength(1)
  expect(textOf(undefined)).toBe('')
})
