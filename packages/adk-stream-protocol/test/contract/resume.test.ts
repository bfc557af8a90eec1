import { describe, expect, test } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import { assistant, weather } from '../support/agents.ts'
import { clients } from '../support/clients.ts'
import { serve, type ServeOptions } from '../support/serve.ts'
import { readFrames } from '../support/wire-rules.ts'

const graceful: ServeOptions = {
  disconnectGraceMs: 60_000,
  agent: (model) => assistant(model, { tools: [weather] }),
}

const SCRIPT =
  '[[say 調べます。]][[call get_weather {"place":"東京"}]][[then]][[say It is]][[wait gate]][[say 18 degrees.]]'

describe.each(oneOf(clients, 'ai 7'))('$name', (client) => {
  test('[TU1] a client that lost its connection resumes and has the whole message, once', async () => {
    await using server = await serve(graceful)
    const browser = server.browser()
    const chat = browser.openChat(client)
    const answer = chat.send(SCRIPT)
    await chat.untilShown('調べます。It is')
    browser.loseConnection()
    await answer
    expect(chat.status).toBe('error')
    const resumed = chat.resume()
    await chat.until(({ status }) => status === 'streaming')
    server.emulator.release('gate')
    await resumed
    expect(chat.status).toBe('ready')
    expect(chat.messages).toHaveLength(2)
    expect(chat.text).toBe('調べます。It is18 degrees.')
    expect((await browser.messages()).messages).toEqual(chat.messages)
    expect(server.emulator.requests).toHaveLength(2)
    await client.validateMessages(chat.messages)
  })

  test('[TU5] the server closes the connection; the turn continues for clients that resume', async () => {
    await using server = await serve(graceful)
    const browser = server.browser()
    const chat = browser.openChat(client)
    const answer = chat.send('[[say One.]][[wait gate]][[say Two.]]')
    await chat.untilShown('One.')
    server.responses.at(-1)?.destroy()
    await answer
    server.emulator.release('gate')
    await chat.resume()
    // The reply may have ended before the client resumed. Then it is among the stored messages.
    const { messages } = await browser.messages()
    expect(messages.at(-1)?.parts.at(-1)).toMatchObject({ type: 'text', text: 'One.Two.' })
  })

  test('[CV2] a reloaded page reads the running message by resuming, with the same id', async () => {
    await using server = await serve(graceful)
    const browser = server.browser()
    const first = browser.openChat(client)
    await first.send('[[say Before.]]')
    const answer = first.send(SCRIPT)
    await first.untilShown('調べます。It is')
    const page = await browser.reload(client)
    expect(page.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
    const resumed = page.resume()
    await page.untilShown('調べます。It is')
    server.emulator.release('gate')
    await Promise.all([answer, resumed])
    expect(page.messages).toEqual(first.messages)
    expect((await browser.messages()).messages).toEqual(first.messages)
    await client.validateMessages(page.messages)
  })

  test('[TU1] two tabs watch one turn', async () => {
    await using server = await serve(graceful)
    const browser = server.browser()
    const first = browser.openChat(client)
    const answer = first.send('[[say One.]][[wait a]][[say Two.]][[wait b]][[say Three.]]')
    await first.untilShown('One.')
    const second = await browser.reload(client)
    const watched = second.resume()
    server.emulator.release('a')
    await Promise.all([first.untilShown('One.Two.'), second.untilShown('One.Two.')])
    server.emulator.release('b')
    await Promise.all([answer, watched])
    expect(second.messages).toEqual(first.messages)
    expect(second.text).toBe('One.Two.Three.')
  })

  test('[TU5] one tab leaving does not stop the turn of the other', async () => {
    await using server = await serve()
    const browser = server.browser()
    const first = browser.openChat(client)
    const answer = first.send('[[say One.]][[wait gate]][[say Two.]]')
    await first.untilShown('One.')
    const second = await browser.reload(client)
    const watched = second.resume()
    await second.untilShown('One.')
    await first.stop()
    await answer
    server.emulator.release('gate')
    await watched
    expect(second.text).toBe('One.Two.')
  })

  test('[TU1] a chat with nothing to resume stays as it is', async () => {
    await using server = await serve(graceful)
    const browser = server.browser()
    const chat = browser.openChat(client)
    await chat.send('[[say One.]]')
    await chat.resume()
    expect(chat.messages).toHaveLength(2)
    expect(chat.status).toBe('ready')
    expect(browser.requests.at(-1)).toMatchObject({ method: 'GET', status: 204 })
  })
})

test('[TU1] whenever a reader attaches, it gets the same message', async () => {
  await using server = await serve(graceful)
  const browser = server.browser()
  const gates = Array.from({ length: 12 }, (_, index) => `g${index}`)
  const script = gates.map((gate, index) => `[[say 部分${index}.]][[wait ${gate}]]`).join('')
  const first = await browser.say(script)
  const readers = [first]
  for (const gate of gates) {
    readers.push(await browser.get('/stream/chat-1/stream'))
    server.emulator.release(gate)
  }
  const bodies = await Promise.all(readers.map((reader) => reader.text()))
  const texts = bodies.map((body) => {
    const { chunks, done } = readFrames(body)
    expect(done).toBe(true)
    return chunks.map(({ delta }) => delta ?? '').join('')
  })
  expect(new Set(texts)).toEqual(new Set([gates.map((_, index) => `部分${index}.`).join('')]))
})
