import { describe, expect, test } from 'vitest'

import { shareOf } from '../../../../test/support/long-run.ts'
import { assistant, FloodModel, weather } from '../support/agents.ts'
import { codeOf } from '../support/browser.ts'
import { partTypes } from '../support/chat-probe.ts'
import { clients } from '../support/clients.ts'
import { hosts } from '../support/hosts.ts'
import { messageBody, sendRaw } from '../support/raw-client.ts'
import { serve } from '../support/serve.ts'

describe.each(hosts)('$name', (host) => {
  /** The hosts and tests share the versions of the AI SDK, so that each host meets each version. */
  const clientsOf = (index: number) =>
    shareOf(clients, { group: hosts.indexOf(host) + index, groups: clients.length })

  test.each(clientsOf(0))(
    '[HO1] streams, calls tools and keeps the conversation, with $name',
    async (client) => {
      await using server = await serve({
        host,
        agent: (model) => assistant(model, { tools: [weather] }),
      })
      const browser = server.browser()
      const chat = browser.openChat(client)
      const call = '[[call get_weather {"place":"東京"}]]'
      const answer = chat.send(`[[say はい。]]${call}[[then]][[say One.]][[wait gate]][[say Two.]]`)
      await chat.untilShown('はい。One.')
      expect(chat.status).toBe('streaming')
      server.emulator.release('gate')
      await answer
      expect(partTypes(chat.lastMessage)).toEqual([
        'step-start',
        'text',
        'tool-get_weather',
        'step-start',
        'text',
      ])
      expect((await browser.messages()).messages).toEqual(chat.messages)
      expect((await browser.delete()).status).toBe(204)
      expect((await browser.messages()).messages).toEqual([])
    },
  )

  test.each(clientsOf(1))('[HO1] stop() aborts the model, with $name', async (client) => {
    await using server = await serve({ host })
    const chat = server.browser().openChat(client)
    const answer = chat.send('[[say One.]][[wait never]]')
    await chat.untilShown('One.')
    const request = await server.emulator.nextRequest()
    await chat.stop()
    await answer
    await request.done
    expect(request.aborted).toBe(true)
    await chat.send('[[say Next.]]')
    expect(chat.text).toBe('Next.')
  })

  test.each(clientsOf(2))('[HO1] a lost connection is resumed, with $name', async (client) => {
    await using server = await serve({ host, disconnectGraceMs: 60_000 })
    const browser = server.browser()
    const chat = browser.openChat(client)
    const answer = chat.send('[[say One.]][[wait gate]][[say Two.]]')
    await chat.untilShown('One.')
    browser.loseConnection()
    await answer
    const resumed = chat.resume()
    await chat.until(({ status }) => status === 'streaming')
    server.emulator.release('gate')
    await resumed
    expect(chat.text).toBe('One.Two.')
    expect(chat.messages).toHaveLength(2)
    expect((await browser.messages()).messages).toEqual(chat.messages)
  })

  test('[HO1] POST …/stop ends the stream', async () => {
    await using server = await serve({ host })
    const browser = server.browser()
    await browser.get('/chats/chat-1/messages')
    const response = await browser.say('[[say One.]][[wait never]]')
    expect((await browser.stop()).status).toBe(204)
    expect(await response.text()).toMatch(/"stopped":true.*data: \[DONE\]\n\n$/s)
  })

  test('[HO1] a reader that does not read pauses the model', async () => {
    const model = new FloodModel({ pieces: 7_500, length: 8_192 })
    await using server = await serve({
      host,
      agent: () => assistant(model),
      recorded: false,
      onChunk: () => undefined,
    })
    using client = await sendRaw(`${server.url}/stream`, { body: messageBody('Go') })
    const produced = await model.paused()
    expect(produced).toBeGreaterThan(0)
    expect(produced).toBeLessThan(3_750)
    client.socket.destroy()
    await model.aborted
  })

  test('[HO1] errors are the same', async () => {
    const origin = 'https://app.example.com'
    await using server = await serve({
      host,
      allowedOrigins: [origin],
      limits: { maxBodyBytes: 1_000 },
    })
    const browser = server.browser()
    expect(await (await browser.get('/health')).json()).toEqual({ status: 'healthy' })
    const large = await browser.post('/stream', 'x'.repeat(2_000), { origin })
    expect(large.status).toBe(413)
    expect(large.headers.get('access-control-allow-origin')).toBe(origin)
    expect(await codeOf(large)).toBe('too-large')
    expect(await codeOf(await browser.get('/nowhere'))).toBe('not-found')
    expect(await codeOf(await browser.get('/stream'))).toBe('method-not-allowed')
    expect(await codeOf(await browser.post('/stream', '{'))).toBe('malformed-json')
    expect(
      await codeOf(await browser.post('/stream', '{}', { 'content-type': 'text/plain' })),
    ).toBe('unsupported-media-type')
    const preflight = await browser.fetch(`${server.url}/stream`, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-origin')).toBe(origin)
  })
})
