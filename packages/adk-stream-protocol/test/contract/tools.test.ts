import type { BaseTool } from '@google/adk'
import { LongRunningFunctionTool } from '@google/adk'
import { describe, expect, test } from 'vitest'

import { assistant, tool, weather } from '../support/agents.ts'
import { partTypes, textOf, toolParts } from '../support/chat-probe.ts'
import { takeTurns } from '../../../../test/support/take-turns.ts'
import { clients } from '../support/clients.ts'
import { serve, type ServeOptions } from '../support/serve.ts'
import { findFaults, readFrames } from '../support/wire-rules.ts'

function withTools(...tools: BaseTool[]): ServeOptions {
  return { agent: (model) => assistant(model, { tools }) }
}

function callWeather(place: string): string {
  return `[[call get_weather {"place":"${place}"}]]`
}

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it('[MP3] a call and its result are one part, and the reply is in a step of its own', async () => {
    await using server = await serve(withTools(weather))
    const chat = server.browser().openChat(client)
    await chat.send('[[say Let me see.]][[call get_weather {"place":"東京"}]][[then]][[say 18°.]]')
    expect(chat.lastMessage?.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'text', text: 'Let me see.' },
      {
        type: 'tool-get_weather',
        state: 'output-available',
        input: { place: '東京' },
        output: { place: '東京', celsius: 18 },
      },
      { type: 'step-start' },
      { type: 'text', text: '18°.' },
    ])
    await client.validateMessages(chat.messages)
  })

  it('[CH4] several steps of several parallel calls keep their order', async () => {
    await using server = await serve(withTools(weather))
    const chat = server.browser().openChat(client)
    await chat.send(
      `${callWeather('A')}${callWeather('B')}[[then]][[say Next.]]${callWeather('C')}[[then]][[say End.]]`,
    )
    expect(partTypes(chat.lastMessage)).toEqual([
      'step-start',
      'tool-get_weather',
      'tool-get_weather',
      'step-start',
      'text',
      'tool-get_weather',
      'step-start',
      'text',
    ])
    expect(toolParts(chat.lastMessage).map(({ input }) => input)).toEqual([
      { place: 'A' },
      { place: 'B' },
      { place: 'C' },
    ])
    await client.validateMessages(chat.messages)
  })

  it('[ER3] the message of a thrown error stays on the server, and the model continues', async () => {
    const secret = 'connect ECONNREFUSED db.internal:5432 password=hunter2'
    const failing = tool('fail', () => Promise.reject(new Error(secret)))
    await using server = await serve(withTools(failing))
    const chat = server.browser().openChat(client)
    await chat.send('[[call fail {}]][[then]][[say Sorry.]]')
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { state: 'output-error', errorText: 'The tool fail failed.' },
    ])
    expect(textOf(chat.lastMessage)).toBe('Sorry.')
    expect(JSON.stringify(chat.messages)).not.toContain('hunter2')
    expect(server.errors.map(String).join()).toContain(secret)
    await client.validateMessages(chat.messages)
  })

  it('[ER3] an error that a tool returns is shown', async () => {
    await using server = await serve(withTools(tool('pay', () => ({ error: '残高が足りません' }))))
    const chat = server.browser().openChat(client)
    await chat.send('[[call pay {}]][[then]][[say No.]]')
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { state: 'output-error', errorText: '残高が足りません' },
    ])
  })

  it.each([
    ['answers after the tool', '[[then]][[say Done.]]', 'Done.'],
    // The second step of the script has no action, so the second response of the model is empty.
    ['stays silent after the tool', '[[then]][[finish STOP]]', ''],
  ])('[CH4] no client sends a request by itself when the model %s', async (_case, then, text) => {
    await using server = await serve(withTools(weather))
    const browser = server.browser()
    const chat = browser.openChat(client, { autoSend: true })
    await chat.send(`[[call get_weather {"place":"A"}]]${then}`)
    expect(chat.text).toBe(text)
    expect(chat.status).toBe('ready')
    // A second request of the client would add a stream. It would be sent before send() resolves.
    expect(browser.sent).toBe(1)
    expect(partTypes(chat.lastMessage).lastIndexOf('step-start')).toBeGreaterThan(
      partTypes(chat.lastMessage).lastIndexOf('tool-get_weather'),
    )
    await client.validateMessages(chat.messages)
  })

  it('[CH8] a call whose result comes from outside ends with tool-calls; the next message works', async () => {
    const ticket = new LongRunningFunctionTool({
      name: 'ask_boss',
      description: 'Asks.',
      execute: () => null,
    })
    await using server = await serve(withTools(ticket))
    const browser = server.browser()
    const chat = browser.openChat(client, { autoSend: true })
    await chat.send('[[call ask_boss {}]]')
    expect(chat.status).toBe('ready')
    expect(toolParts(chat.lastMessage)).toMatchObject([{ state: 'input-available' }])
    expect(server.reported.at(-1)?.chunk).toMatchObject({ finishReason: 'tool-calls' })
    expect(server.emulator.requests).toHaveLength(1)
    expect((await browser.messages()).messages).toEqual(chat.messages)
    await chat.send('[[say Meanwhile.]]')
    expect(chat.text).toBe('Meanwhile.')
    expect(browser.sent).toBe(2)
  })

  it('[CV1] a call that waits is still shown as waiting after the next message', async () => {
    const ticket = new LongRunningFunctionTool({
      name: 'ask_boss',
      description: 'Asks.',
      execute: () => null,
    })
    await using server = await serve(withTools(ticket))
    const browser = server.browser()
    const chat = browser.openChat(client)
    await chat.send('[[call ask_boss {}]]')
    await chat.send('[[say Meanwhile.]]')
    expect((await browser.messages()).messages).toEqual(chat.messages)
  })

  it('[MP8] only the exposed keys of the state that a tool sets are sent', async () => {
    const remember = tool('remember', (_args, context) => {
      context?.state.set('theme', 'dark')
      context?.state.set('token', 'ya29.a@example.com')
      return { ok: true }
    })
    await using silent = await serve(withTools(remember))
    const browser = silent.browser()
    const unseen = browser.openChat(client)
    await unseen.send('[[call remember {}]][[then]][[say Kept.]]')
    expect(partTypes(unseen.lastMessage)).not.toContain('data-state-delta')
    expect(JSON.stringify([unseen.messages, await browser.messages()])).not.toContain('ya29')
    await using server = await serve({
      ...withTools(remember),
      exposeState: (key) => key === 'theme',
    })
    const chat = server.browser().openChat(client)
    await chat.send('[[call remember {}]][[then]][[say Kept.]]')
    const data = chat.lastMessage?.parts.filter(({ type }) => type === 'data-state-delta')
    expect(data).toMatchObject([{ data: { delta: { theme: 'dark' } } }])
    expect(JSON.stringify(chat.messages)).not.toContain('example.com')
    await client.validateMessages(chat.messages)
  })

  it('[ER2] a call of a tool that does not exist ends the turn with its code', async () => {
    await using server = await serve(withTools(weather))
    const browser = server.browser()
    const chat = browser.openChat(client)
    await chat.send('[[call no_such_tool {}]]')
    expect(chat.status).toBe('error')
    expect(chat.lastMessage?.metadata).toMatchObject({ error: { code: 'unknown-tool' } })
    const { messages } = await browser.messages()
    expect(messages[1]?.parts).toEqual(chat.lastMessage?.parts)
    await chat.send('[[say Back.]]')
    expect(chat.text).toBe('Back.')
  })
})

test('[CH2] [CH3] [CH5] a turn begins with start, ends with finish, and closes everything that it opens', async () => {
  await using server = await serve(withTools(weather))
  const call = callWeather('A')
  const script = `[[say One.]]${call}${call}[[say Two.]][[then]][[say Three.]]${call}[[then]][[say Four.]]`
  const { chunks, done } = readFrames(await (await server.browser().say(script)).text())
  expect(done).toBe(true)
  expect(await findFaults(chunks, true)).toEqual([])
  const types = chunks.map(({ type }) => type)
  expect(types[0]).toBe('start')
  expect(types.at(-1)).toBe('finish')
  for (const [opens, closes] of [
    ['start-step', 'finish-step'],
    ['text-start', 'text-end'],
    ['tool-input-available', 'tool-output-available'],
  ]) {
    const count = types.filter((type) => type === opens).length
    expect(count).toBeGreaterThan(1)
    expect(types.filter((type) => type === closes)).toHaveLength(count)
  }
})
