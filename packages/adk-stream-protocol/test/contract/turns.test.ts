import { describe, expect, test } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import { defer } from '../support/agents.ts'
import { codeOf } from '../support/browser.ts'
import { textOf } from '../support/chat-probe.ts'
import { clients } from '../support/clients.ts'
import { serve } from '../support/serve.ts'

describe.each(oneOf(clients, 'ai 6'))('$name', (client) => {
  test('[TU2] a message during a reply that is being read is rejected', async () => {
    await using server = await serve()
    const browser = server.browser()
    const chat = browser.openChat(client)
    const answer = chat.send('[[say One.]][[wait gate]][[say Two.]]')
    await chat.untilShown('One.')
    const other = await browser.reload(client)
    await other.send('[[say Me too.]]')
    expect(other.status).toBe('error')
    expect(other.error?.message).toContain('turn-running')
    expect(browser.requests.at(-1)).toMatchObject({ status: 409 })
    server.emulator.release('gate')
    await answer
    expect(chat.text).toBe('One.Two.')
    expect((await browser.messages()).messages).toEqual(chat.messages)
  })

  test('[TU2] with queue, messages wait and all get a reply; one over the limit is rejected', async () => {
    await using server = await serve({ whileRunning: 'queue', limits: { maxQueued: 2 } })
    const browser = server.browser()
    const first = browser.openChat(client)
    const answer = first.send('[[say One.]][[wait gate]]')
    await first.untilShown('One.')
    const others = [1, 2, 3].map(() => browser.openChat(client))
    const sent = others.map((chat, index) => chat.send(`[[say Reply ${index}.]]`))
    // The rejection of the third message shows that the other two are waiting.
    await Promise.race(others.map((chat) => chat.until(({ status }) => status === 'error')))
    server.emulator.release('gate')
    await Promise.all([answer, ...sent])
    const refused = others.filter(({ status }) => status === 'error')
    expect(refused.map(({ error }) => error?.message)).toEqual([
      expect.stringContaining('turn-running'),
    ])
    const answered = others.filter(({ status }) => status === 'ready').map(({ text }) => text)
    expect(answered).toHaveLength(2)
    for (const text of answered) expect(text).toMatch(/^Reply \d\.$/)
    const { messages } = await browser.messages()
    const texts = messages.filter(({ role }) => role === 'assistant').map(textOf)
    expect(texts.toSorted()).toEqual(['One.', ...answered].toSorted())
  })

  test('[TU1580] with queue, a stop that names a message that waits stops this one: it is kept, and its reply is stopped', async () => {
    await using server = await serve({ whileRunning: 'queue', limits: { maxQueued: 1 } })
    const browser = server.browser()
    const first = browser.openChat(client)
    const answer = first.send('[[say One.]][[wait gate]]')
    await first.untilShown('One.')
    const others = [1, 2].map(() => browser.openChat(client))
    const sent = others.map((chat, index) => chat.send(`[[say Reply ${index}.]]`))
    // The rejection of one message shows that the other one waits.
    await Promise.race(others.map((chat) => chat.until(({ status }) => status === 'error')))
    const waiting = others.find(({ status }) => status !== 'error')
    const stop = await browser.post(`/chats/chat-1/stop?messageId=${waiting?.messages.at(-1)?.id}`)
    expect(stop.status).toBe(204)
    server.emulator.release('gate')
    await Promise.all([answer, ...sent])
    expect(first.text).toBe('One.')
    expect(server.emulator.requests).toHaveLength(1)
    const { messages } = await browser.messages()
    expect(messages.slice(2)).toMatchObject([
      { role: 'user', id: waiting?.messages.find(({ role }) => role === 'user')?.id },
      { role: 'assistant', parts: [], metadata: { stopped: true } },
    ])
  })

  test('[TU6] a new message stops a turn without a reader, and gets a reply', async () => {
    await using server = await serve({ disconnectGraceMs: 60_000 })
    const browser = server.browser()
    const chat = browser.openChat(client)
    const answer = chat.send('[[say Half.]][[wait never]]')
    await chat.untilShown('Half.')
    const request = await server.emulator.nextRequest()
    await chat.stop()
    await answer
    await chat.send('[[say Next.]]')
    expect(chat.text).toBe('Next.')
    await request.done
    expect(request.aborted).toBe(true)
    const { messages } = await browser.messages()
    expect(messages.map(textOf)).toEqual([
      '[[say Half.]][[wait never]]',
      'Half.',
      '[[say Next.]]',
      'Next.',
    ])
  })

  test('[CV4] a chat can be deleted while its turn runs', async () => {
    await using server = await serve()
    const browser = server.browser()
    const chat = browser.openChat(client)
    const answer = chat.send('[[say Half.]][[wait never]]')
    await chat.untilShown('Half.')
    const request = await server.emulator.nextRequest()
    expect((await browser.delete()).status).toBe(204)
    await answer
    await request.done
    expect(request.aborted).toBe(true)
    expect(await browser.messages()).toMatchObject({ messages: [], running: false })
    await (await browser.say('[[say Anew.]]')).text()
    expect((await browser.messages()).messages).toHaveLength(2)
    expect(JSON.stringify(server.emulator.requests.at(-1)?.body)).not.toContain('Half.')
  })

  test('[TU11] closing the bridge without time to drain ends all turns and rejects new ones', async () => {
    await using server = await serve()
    const browser = server.browser()
    const chat = browser.openChat(client)
    const answer = chat.send('[[say Half.]][[wait never]]')
    await chat.untilShown('Half.')
    const request = await server.emulator.nextRequest()
    await server.bridge.close({ drainMs: 0 })
    await answer
    expect(chat.status).toBe('ready')
    expect(chat.lastMessage?.metadata).toMatchObject({ stopped: true })
    await request.done
    expect(request.aborted).toBe(true)
    const refused = await browser.say('[[say No.]]')
    expect(refused.status).toBe(503)
    expect(await codeOf(refused)).toBe('unavailable')
  })
})

test('[TU2] of two messages at the same time, one gets a reply and the other is rejected', async () => {
  const both = defer()
  let asked = 0
  await using server = await serve({
    authenticate: async () => {
      asked += 1
      if (asked === 2) both.resolve()
      await both.promise
      return { id: 'hanako' }
    },
  })
  const browser = server.browser()
  const script = '[[say One.]][[wait gate]][[say Two.]]'
  const answers = await Promise.all([browser.say(script), browser.say(script)])
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409])
  server.emulator.release('gate')
  const answered = answers.find(({ status }) => status === 200)
  expect(await answered?.text()).toContain('Two.')
})

test('[TU10] a principal has at most the allowed number of turns; other principals are not affected', async () => {
  await using server = await serve({ limits: { maxTurnsPerPrincipal: 2 } })
  const browser = server.browser()
  await browser.get('/chats/chat-0/messages')
  const answers = [
    await browser.say('[[say One.]][[wait gate]]', 'chat-1'),
    await browser.say('[[say One.]][[wait gate]]', 'chat-2'),
  ]
  const refused = await browser.say('[[say One.]]', 'chat-3')
  expect(refused.status).toBe(429)
  expect(refused.headers.get('retry-after')).toBe('1')
  expect(await codeOf(refused)).toBe('too-many-turns')
  const stranger = await server.browser().say('[[say One.]]', 'chat-3')
  expect(stranger.status).toBe(200)
  server.emulator.release('gate')
  await Promise.all([...answers, stranger].map((answer) => answer.text()))
  const free = await browser.say('[[say Free.]]', 'chat-3')
  expect(free.status).toBe(200)
  await free.text()
})
