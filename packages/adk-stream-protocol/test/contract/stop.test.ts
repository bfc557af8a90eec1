import { BasePlugin } from '@google/adk'
import { describe, expect, test } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import { assistant, defer, tool, weather } from '../support/agents.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { clients } from '../support/clients.ts'
import { serve } from '../support/serve.ts'

describe.each(oneOf(clients, 'ai 6'))('$name', (client) => {
  test('[TU7] stop() aborts the model, keeps the text so far, and the next turn works', async () => {
    await using server = await serve()
    const browser = server.browser()
    const chat = browser.openChat(client)
    const answer = chat.send('[[say So far.]][[wait never]][[say Not this.]]')
    await chat.untilShown('So far.')
    const request = await server.emulator.nextRequest()
    await chat.stop()
    await answer
    await request.done
    expect(request.aborted).toBe(true)
    await chat.send('[[say Next.]]')
    expect(chat.text).toBe('Next.')
    const { messages } = await browser.messages()
    expect(messages.map(textOf)).toEqual([
      '[[say So far.]][[wait never]][[say Not this.]]',
      'So far.',
      '[[say Next.]]',
      'Next.',
    ])
    expect(messages.map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id))
    expect(messages[1]?.metadata).toMatchObject({ stopped: true })
    const history = JSON.stringify(server.emulator.requests.at(-1)?.body)
    expect(history).toContain('So far.')
    await client.validateMessages(messages)
  })

  test.each(['the message is stored', 'the model replies'])(
    '[TU900] a message that is stopped before %s is kept, and its reply is marked as stopped',
    async (moment) => {
      const [reached, gate] = [defer(), defer()]
      let isSlow = false
      class Slow extends BasePlugin {
        override async onUserMessageCallback(): Promise<undefined> {
          if (!isSlow) return
          reached.resolve()
          await gate.promise
        }
      }
      await using server = await serve({ plugins: [new Slow('slow')], disconnectGraceMs: 60_000 })
      const browser = server.browser()
      const chat = browser.openChat(client)
      // The response to the first request has the cookie.
      await chat.send('[[say First.]]')
      await server.emulator.nextRequest()
      isSlow = moment === 'the message is stored'
      const answer = chat.send('[[wait never]]')
      await (isSlow ? reached.promise : server.emulator.nextRequest())
      const stopped = browser.stop()
      // The turn ends without the callback.
      expect((await stopped).status).toBe(204)
      gate.resolve()
      isSlow = false
      await answer
      const { messages } = await browser.messages()
      expect(messages.slice(2)).toMatchObject([
        { role: 'user', parts: [{ text: '[[wait never]]' }] },
        { role: 'assistant', parts: [], metadata: { stopped: true } },
      ])
      expect(messages[2]?.id).toBe(chat.messages[2]?.id)
      await chat.send('[[say Next.]]')
      expect(chat.text).toBe('Next.')
      expect((await browser.messages()).messages).toHaveLength(6)
    },
  )

  test('[TU1990] a message whose reply is generated again stays stored if a plugin fails before it is stored', async () => {
    let isBroken = false
    class Broken extends BasePlugin {
      override async onUserMessageCallback(): Promise<undefined> {
        if (isBroken) throw new Error('broken')
      }
    }
    await using server = await serve({ plugins: [new Broken('broken')] })
    const browser = server.browser()
    const chat = browser.openChat(client)
    await chat.send('[[say First.]]')
    await chat.send('[[say Second.]]')
    isBroken = true
    await chat.regenerate()
    isBroken = false
    const { messages } = await browser.messages()
    expect(messages.map(textOf)).toEqual(['[[say First.]]', 'First.', '[[say Second.]]', ''])
    expect(messages.at(-1)?.metadata).toMatchObject({ error: { code: 'internal' } })
    await chat.regenerate()
    expect((await browser.messages()).messages.map(textOf).slice(2)).toEqual([
      '[[say Second.]]',
      'Second.',
    ])
  })

  test('[TU901] a message that is sent again starts no other turn: its running or stored reply is read', async () => {
    await using server = await serve({ disconnectGraceMs: 60_000 })
    const browser = server.browser()
    const send = (): Promise<Response> =>
      browser.post('/stream', {
        id: 'chat-1',
        trigger: 'submit-message',
        messages: [
          { id: 'm1', role: 'user', parts: [{ type: 'text', text: '[[say One.]][[wait more]]' }] },
        ],
      })
    const first = await send()
    const reading = first.text()
    await server.emulator.nextRequest()
    const second = (await send()).text()
    server.emulator.release('more')
    const ended = [await reading, await second, await (await send()).text()]
    const ids = ended.map((body) => /"messageId":"([^"]+)"/.exec(body)?.[1])
    expect(new Set(ids).size).toBe(1)
    for (const body of ended) expect(body).toContain('One.')
    expect(server.emulator.requests).toHaveLength(1)
    expect((await browser.messages()).messages).toHaveLength(2)
  })

  test('[TU901] a message that arrives again after the next one changes nothing, also while the next reply has no reader', async () => {
    await using server = await serve({ disconnectGraceMs: 60_000 })
    const browser = server.browser()
    const send = (id: string, text: string): Promise<Response> =>
      browser.post('/stream', {
        id: 'chat-1',
        trigger: 'submit-message',
        messages: [{ id, role: 'user', parts: [{ type: 'text', text }] }],
      })
    await (await send('m1', '[[say One.]]')).text()
    const next = await send('m2', '[[say Two.]][[wait more]][[say Three.]]')
    await server.emulator.nextRequest()
    await next.body?.cancel()
    const again = send('m1', '[[say One.]]')
    // Its response waits for the running reply.
    await browser.messages()
    server.emulator.release('more')
    expect(await (await again).text()).toContain('One.')
    await expect
      .poll(async () => JSON.stringify((await browser.messages()).messages[3]), { timeout: 60_000 })
      .toContain('Three.')
    await (await send('m1', '[[say One.]]')).text()
    expect((await browser.messages()).messages).toHaveLength(4)
    expect(server.emulator.requests).toHaveLength(2)
  })

  test('[TU7] POST …/stop ends the stream of every reader', async () => {
    await using server = await serve({ disconnectGraceMs: 60_000 })
    const browser = server.browser()
    const chat = browser.openChat(client)
    const answer = chat.send('[[say So far.]][[wait never]]')
    await chat.untilShown('So far.')
    const request = await server.emulator.nextRequest()
    expect((await browser.stop()).status).toBe(204)
    await answer
    await request.done
    expect(request.aborted).toBe(true)
    expect(chat.status).toBe('ready')
    expect(chat.lastMessage?.metadata).toMatchObject({ stopped: true })
    const { messages, running } = await browser.messages()
    expect(running).toBe(false)
    expect(messages.map(({ id, parts }) => ({ id, parts }))).toEqual(
      chat.messages.map(({ id, parts }) => ({ id, parts })),
    )
  })

  test('[TU7] a stop while a tool runs aborts its signal and settles its call', async () => {
    const called = defer()
    const signalled = defer()
    const slow = tool('slow', (_args, context) => {
      called.resolve()
      return new Promise((_resolve, reject) => {
        context?.abortSignal?.addEventListener('abort', () => {
          signalled.resolve()
          reject(new Error('stopped'))
        })
      })
    })
    await using server = await serve({
      agent: (model) => assistant(model, { tools: [slow] }),
    })
    const browser = server.browser()
    const chat = browser.openChat(client)
    const answer = chat.send('[[say Working.]][[call slow {}]]')
    await called.promise
    await chat.until(({ lastMessage }) => toolParts(lastMessage)[0]?.state === 'input-available')
    await chat.stop()
    await answer
    await signalled.promise
    await chat.send('[[say Next.]]')
    expect(chat.text).toBe('Next.')
    expect(chat.status).toBe('ready')
    const { messages } = await browser.messages()
    expect(toolParts(messages[1])).toMatchObject([{ state: 'output-error' }])
    await client.validateMessages(messages)
  })

  test('[TU8] a tool that ignores the signal does not block the chat', async () => {
    const called = defer()
    const release = defer()
    const finished = defer()
    const deaf = tool('deaf', async () => {
      called.resolve()
      await release.promise
      finished.resolve()
      return { late: 'result' }
    })
    await using server = await serve({ agent: (model) => assistant(model, { tools: [deaf] }) })
    const browser = server.browser()
    const chat = browser.openChat(client)
    const answer = chat.send('[[call deaf {}]][[then]][[say Too late.]]')
    await called.promise
    await chat.stop()
    await answer
    await chat.send('[[say Next.]]')
    expect(chat.text).toBe('Next.')
    // The abandoned run ends after the conversation has continued.
    release.resolve()
    await finished.promise
    await chat.send('[[say And on.]]')
    expect(chat.text).toBe('And on.')
    const { messages } = await browser.messages()
    expect(messages.map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id))
    expect(toolParts(messages[1])).toMatchObject([{ type: 'tool-deaf', state: 'output-error' }])
    expect(messages.slice(1).map(textOf).join()).not.toContain('Too late.')
    await client.validateMessages(messages)
  })

  test('[CV1] a stopped call is shown the same after a reload', async () => {
    const called = defer()
    const hanging = tool('hang', () => {
      called.resolve()
      return new Promise<never>(() => undefined)
    })
    await using server = await serve({
      disconnectGraceMs: 60_000,
      agent: (model) => assistant(model, { tools: [weather, hanging] }),
    })
    const browser = server.browser()
    const chat = browser.openChat(client)
    const answer = chat.send('[[call get_weather {"place":"A"}]][[then]][[call hang {}]]')
    await called.promise
    await browser.stop()
    await answer
    const { messages } = await browser.messages()
    expect(messages.map(({ id, parts }) => ({ id, parts }))).toEqual(
      chat.messages.map(({ id, parts }) => ({ id, parts })),
    )
  })

  test('[CV1] a stopped reply keeps its reasoning after a reload', async () => {
    await using server = await serve({
      disconnectGraceMs: 60_000,
      agent: (model) =>
        assistant(model, { generateContentConfig: { thinkingConfig: { includeThoughts: true } } }),
    })
    const browser = server.browser()
    const chat = browser.openChat(client)
    const answer = chat.send('[[think Let me see.]][[say So far.]][[wait never]]')
    await chat.untilShown('So far.')
    await browser.stop()
    await answer
    const { messages } = await browser.messages()
    expect(messages[1]?.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'reasoning', text: 'Let me see.' },
      { type: 'text', text: 'So far.' },
    ])
  })

  test('[TU5] a turn whose only reader has disconnected stops the model', async () => {
    await using server = await serve()
    const browser = server.browser()
    const chat = browser.openChat(client)
    const answer = chat.send('[[say Hello.]][[wait never]]')
    await chat.untilShown('Hello.')
    const request = await server.emulator.nextRequest()
    browser.loseConnection()
    await answer
    await request.done
    expect(request.aborted).toBe(true)
  })
})
