import { LlmAgent, ParallelAgent } from '@google/adk'
import { firstOf, scriptResponder } from 'gemini-emulator'
import { describe, expect, test, vi } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import type { ConnectionState } from '../../src/client/index.ts'
import { AdkError, adkApi, sseTransport } from '../../src/client/index.ts'
import { ApprovingChat } from '../approvals/support/approving-chat.ts'
import { expectValid } from '../approvals/support/expect-record.ts'
import { TestBridge, type TestBridgeOptions } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { defer } from '../support/agents.ts'
import { type ChatPart, toolParts } from '../support/chat-probe.ts'
import { openSse, versions } from './support/client-page.ts'
import { CuttableFetch } from './support/cuttable-fetch.ts'

const POLL = { timeout: 120_000, interval: 20 }
const HEADERS = { 'x-api-key': 'hanako' }

/** Two agents reply in one message: one of them makes calls, and the other one writes. */
const BOTH: Pick<TestBridgeOptions, 'agent' | 'respond'> = {
  agent: (model, tools) =>
    // oxlint-disable-next-line typescript/no-deprecated -- Deprecated in favour of Workflow, and in use.
    new ParallelAgent({
      name: 'both',
      subAgents: [
        new LlmAgent({ name: 'payer', model, tools }),
        new LlmAgent({ name: 'writer', model, instruction: 'Write.' }),
      ],
    }),
  respond: firstOf(
    ({ systemInstruction }) =>
      systemInstruction.includes('Write.')
        ? [
            { type: 'say', text: 'One.' },
            { type: 'wait', gate: 'more' },
            { type: 'say', text: 'Two.' },
            { type: 'wait', gate: 'end' },
          ]
        : undefined,
    scriptResponder,
  ),
}

/** A transport, the bodies that it posted to `/stream`, and all that it sent. */
function openTransport(url: string, key = 'hanako') {
  const bodies: { messages: { role: string }[] }[] = []
  const sent: string[] = []
  const transport = sseTransport({
    url,
    headers: { 'x-api-key': key },
    fetch: (input, init) => {
      sent.push(String(init?.body))
      if (String(input).endsWith('/stream') && init?.method === 'POST')
        bodies.push(JSON.parse(String(init.body)) as (typeof bodies)[number])
      return fetch(input, init)
    },
  })
  return { transport, bodies, sent }
}

describe.each(oneOf(versions, 'ai 7'))('$name', (version) => {
  test('[CL1] only what the server needs is sent: the newest message, or the calls with responses', async () => {
    await using testBridge = await TestBridge.open()
    const { transport, bodies } = openTransport(testBridge.url)
    const chat = await openSse(transport, version)
    await chat.send('[[say One.]]')
    await chat.send(`${callPayment(50)}[[then]][[say Done.]]`)
    const [id = ''] = chat.asked
    await chat.decide(true)
    await chat.regenerate()
    expect(bodies.map(({ messages }) => messages.map(({ role }) => role))).toEqual([
      ['user'],
      ['user'],
      ['assistant'],
      ['user'],
    ])
    expect(bodies[2]?.messages).toMatchObject([
      { parts: [{ state: 'approval-responded', approval: { id, approved: true } }] },
    ])
    expect(testBridge.wallet.payments).toHaveLength(1)
    await expectValid(chat.messages)
  })

  test('[CL900] a decision that is made while the connection is lost is sent, although the server reports the approval as open', async () => {
    await using testBridge = await TestBridge.open()
    const net = new CuttableFetch()
    net.stallAfter('tool-approval-request')
    const transport = sseTransport({ url: testBridge.url, headers: HEADERS, fetch: net.fetch })
    const chat = await openSse(transport, version)
    void chat.send(`${callPayment(50)}[[then]][[say Done.]]`)
    const [id = ''] = await chat.untilAsked()
    // The turn has ended on the server.
    await expect.poll(() => transport.loadChat('chat-1'), POLL).toMatchObject({ running: false })
    await chat.click({ id, approved: true })
    net.cut()
    await chat.untilShown('Done.')
    await chat.rest()
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(chat.errors).toEqual([])
    await expectValid(chat.messages)
  })

  test.each([
    [true, true],
    [true, false],
    [false, false],
  ])(
    '[CL2] over HTTP, two approvals decided %s and %s: each decision is sent once, and none is lost',
    async (alice, bob) => {
      await using testBridge = await TestBridge.open()
      const { transport, sent } = openTransport(testBridge.url)
      const chat = await openSse(transport, version)
      await chat.send(`${callPayment(30, 'Alice')}${callPayment(40, 'Bob')}[[then]][[say Done.]]`)
      await chat.decide(alice, bob)
      // A decision beside the stream has its own response. What it led to arrives in the stream.
      await expect
        .poll(() => toolParts(chat.lastMessage).map(({ state }) => state))
        .toEqual([alice, bob].map((approved) => (approved ? 'output-available' : 'output-denied')))
      await expect.poll(() => chat.text).toBe('Done.')
      expect(testBridge.wallet.balance).toBe(1_000 - (alice ? 30 : 0) - (bob ? 40 : 0))
      const decisions = sent.flatMap((body) => body.match(/"approved"/g) ?? [])
      expect(decisions).toHaveLength(2)
      await expectValid(chat.messages)
    },
  )

  test('[CL4] edited arguments over HTTP: invalid ones leave the approval open', async () => {
    await using testBridge = await TestBridge.open()
    const { transport } = openTransport(testBridge.url)
    const chat = await openSse(transport, version)
    await chat.send(`${callPayment(50)}[[then]][[say Done.]]`)
    const [id = ''] = chat.asked
    await chat.attached.approve(id, { args: { amount: -1, recipient: '花子' } })
    await chat.rest()
    expect(chat.error).toMatchObject({ code: 'bad-request' })
    expect(chat.asked).toEqual([id])
    await chat.attached.approve(id, { args: { amount: 40, recipient: '花子' } })
    await chat.rest()
    expect(testBridge.wallet.payments).toMatchObject([{ amount: 40 }])
    expect(chat.text).toBe('Done.')
    await expectValid(chat.messages)
  })

  test('[CL11] a rejected request and a failed reply are an AdkError with its code', async () => {
    await using testBridge = await TestBridge.open()
    const stranger = await openSse(openTransport(testBridge.url).transport, version)
    const { transport } = openTransport(testBridge.url, 'nobody')
    await expect(transport.loadMessages('chat-1')).rejects.toMatchObject({
      code: 'unauthenticated',
    })
    await stranger.send('[[fail 429]]')
    expect(stranger.error).toBeInstanceOf(AdkError)
    expect(stranger.error).toMatchObject({ code: 'model-rate-limited' })
  })

  test('[CL10] stop() over HTTP stops the turn, also within its grace time', async () => {
    await using testBridge = await TestBridge.open({ disconnectGraceMs: 60_000 })
    const { transport } = openTransport(testBridge.url)
    const chat = await openSse(transport, version)
    const reply = chat.send('[[say So far.]][[wait never]][[say Not this.]]')
    await chat.untilShown('So far.')
    const request = await testBridge.emulator.nextRequest()
    await chat.stop()
    await reply
    await request.done
    expect(request.aborted).toBe(true)
  })

  test.each(['while the reply is read', 'before its first chunk'])(
    '[CL10] a stop %s that arrives late over HTTP does not stop the next reply',
    async (moment) => {
      await using testBridge = await TestBridge.open({ disconnectGraceMs: 60_000 })
      const [isHeld, arrives] = [defer(), defer()]
      const stops: Promise<Response>[] = []
      const slowStop: typeof fetch = async (input, init) => {
        if (!String(input).includes('/stop')) return fetch(input, init)
        isHeld.resolve()
        await arrives.promise
        const stopped = fetch(input, init)
        stops.push(stopped)
        return stopped
      }
      const transport = sseTransport({ url: testBridge.url, headers: HEADERS, fetch: slowStop })
      const chat = await openSse(transport, version)
      const isRead = moment === 'while the reply is read'
      const first = chat.send(`${isRead ? '[[say So far.]]' : ''}[[wait never]]`)
      if (isRead) await chat.untilShown('So far.')
      else await testBridge.emulator.nextRequest()
      await chat.stop()
      await first
      await isHeld.promise
      const next = chat.send('[[say Next.]][[wait more]][[say Whole.]]')
      await chat.untilShown('Next.')
      arrives.resolve()
      await expect.poll(() => stops).toHaveLength(1)
      await Promise.all(stops)
      testBridge.emulator.release('more')
      await next
      expect(chat.text).toBe('Next.Whole.')
    },
  )

  test('[CL8] without an attached chat, an interrupted response is a network error, and can be resumed', async () => {
    await using testBridge = await TestBridge.open({ disconnectGraceMs: 60_000 })
    const net = new CuttableFetch()
    const transport = sseTransport({ url: testBridge.url, headers: HEADERS, fetch: net.fetch })
    const chat = new ApprovingChat(version.open({ id: 'chat-1', messages: [], transport }), {})
    const reply = chat.send('[[say One.]][[wait more]][[say Two.]]')
    await chat.untilShown('One.')
    net.cut()
    await reply
    expect(chat.error).toBeInstanceOf(TypeError)
    expect(chat.error?.message).toContain('network')
    const resumed = chat.resume()
    await chat.until(({ status }) => status === 'streaming')
    testBridge.emulator.release('more')
    await resumed
    expect(chat.text).toBe('One.Two.')
    await expectValid(chat.messages)
  })

  test('[CL19] [CL7] an interrupted reply over HTTP continues, and the connection state shows it', async () => {
    await using testBridge = await TestBridge.open({ disconnectGraceMs: 60_000 })
    const net = new CuttableFetch()
    const transport = sseTransport({
      url: testBridge.url,
      headers: HEADERS,
      fetch: net.fetch,
      backoff: { firstMs: 1, maxMs: 5 },
    })
    const states: ConnectionState[] = []
    transport.onConnection((state) => states.push(state))
    expect(transport.connection).toEqual({ state: 'idle' })
    const chat = await openSse(transport, version)
    const reply = chat.send('[[say One.]][[wait more]][[say Two.]]')
    await chat.untilShown('One.')
    net.fail(2)
    net.cut()
    await vi.waitFor(() => expect(states.filter(({ state }) => state === 'open')).toHaveLength(2))
    testBridge.emulator.release('more')
    await reply
    expect(chat.text).toBe('One.Two.')
    expect(chat.error).toBeUndefined()
    expect(chat.messages).toHaveLength(2)
    const names = states.map(({ state }) => state)
    expect(names.slice(0, 3)).toEqual(['connecting', 'open', 'lost'])
    expect(states.filter(({ state }) => state === 'lost').map(({ attempt }) => attempt)).toEqual([
      1, 2, 3,
    ])
    expect(names.at(-2)).toBe('open')
    expect(transport.connection).toEqual({ state: 'idle' })
    expect(transport.connection).toBe(states.at(-1))
    await expectValid(chat.messages)
  })

  test('[CL8] the attempts to continue an interrupted reply over HTTP are counted anew only when something of it has arrived', async () => {
    await using testBridge = await TestBridge.open({ disconnectGraceMs: 60_000 })
    const net = new CuttableFetch()
    let breaks = 0
    let broken = 0
    const transport = sseTransport({
      url: testBridge.url,
      headers: HEADERS,
      backoff: { firstMs: 1, maxMs: 5, attempts: 3 },
      fetch: async (input, init) => {
        const isResumed = String(input).includes('/stream/')
        if (!isResumed || breaks === 0) return net.fetch(input, init)
        breaks -= 1
        broken += 1
        return brokenOff()
      },
    })
    const attempts: (number | undefined)[] = []
    transport.onConnection(({ state, attempt }) => {
      if (state === 'lost') attempts.push(attempt)
    })
    const chat = await openSse(transport, version)
    const reply = chat.send(
      '[[say One.]][[wait two]][[say Two.]][[wait three]][[say Three.]][[wait never]]',
    )
    await chat.untilShown('One.')
    breaks = 2
    net.cut()
    testBridge.emulator.release('two')
    await chat.untilShown('One.Two.')
    breaks = 2
    net.cut()
    testBridge.emulator.release('three')
    await chat.untilShown('One.Two.Three.')
    expect(attempts).toEqual([1, 2, 3, 1, 2, 3])
    expect(chat.error).toBeUndefined()
    ;[breaks, broken] = [20, 0]
    net.cut()
    await reply
    expect(broken).toBe(3)
    expect(chat.error).toBeInstanceOf(TypeError)
    await transport.api.stopChat('chat-1')
  })

  test.each(['another message', 'its own message'])(
    '[CL371] over HTTP, a decision that waits for the interrupted reply in %s can be taken back',
    async (place) => {
      const isOther = place === 'another message'
      await using testBridge = await TestBridge.open({
        disconnectGraceMs: 60_000,
        whilePending: 'keep',
        ...(!isOther && BOTH),
      })
      const net = new CuttableFetch()
      const transport = sseTransport({
        url: testBridge.url,
        headers: HEADERS,
        fetch: net.fetch,
        backoff: { firstMs: 1, maxMs: 5, attempts: 1_000_000 },
      })
      const chat = await openSse(transport, version)
      const payment = (): ChatPart | undefined => chat.messages.flatMap(toolParts)[0]
      const paid = chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
      const [id = ''] = await chat.untilAsked()
      if (isOther) await paid
      const reply = isOther ? chat.send('[[say One.]][[wait more]][[say Two.]][[wait end]]') : paid
      await chat.untilShown('One.')
      net.fail(1_000_000)
      net.cut()
      await expect.poll(() => transport.connection.state, POLL).toBe('lost')
      await chat.click({ id, approved: true })
      expect(payment()?.state).toBe('approval-responded')
      expect(chat.attached.cancelDecision(id)).toBe(true)
      await chat.until(() => payment()?.state === 'approval-requested')
      expect(chat.attached.cancelDecision(id)).toBe(false)
      net.fail(0)
      testBridge.emulator.release('more')
      await chat.untilShown('One.Two.')
      expect(payment()?.state).toBe('approval-requested')
      testBridge.emulator.release('end')
      await reply
      await chat.rest()
      expect(payment()?.state).toBe('approval-requested')
      expect(testBridge.wallet.payments).toEqual([])
      expect(chat.errors).toEqual([])
      await chat.click({ id, approved: true })
      await expect.poll(() => payment()?.state, POLL).toBe('output-available')
      expect(testBridge.wallet.payments).toHaveLength(1)
    },
  )

  test('[CL1955] [CL903] a reply over HTTP on whose connection nothing arrives continues over another one', async () => {
    await using testBridge = await TestBridge.open({
      disconnectGraceMs: 60_000,
      limits: { keepAliveMs: 200 },
    })
    const net = new CuttableFetch()
    const transport = sseTransport({ url: testBridge.url, headers: HEADERS, fetch: net.fetch })
    const chat = await openSse(transport, version)
    net.stallAfter('One.')
    const reply = chat.send('[[say One.]][[wait more]][[say Two.]]')
    await chat.untilShown('One.')
    testBridge.emulator.release('more')
    await reply
    expect(chat.text).toBe('One.Two.')
    expect(chat.status).toBe('ready')
    expect(chat.messages).toHaveLength(2)
    await expectValid(chat.messages)
  })

  test('[CL7] a reply that ended while it was interrupted is loaded from the server; one that is not stored is a network error', async () => {
    await using testBridge = await TestBridge.open({ disconnectGraceMs: 60_000 })
    const net = new CuttableFetch()
    const transport = sseTransport({
      url: testBridge.url,
      headers: HEADERS,
      fetch: net.fetch,
      backoff: { firstMs: 1, maxMs: 5, attempts: 3 },
    })
    const chat = await openSse(transport, version)
    const reply = chat.send('[[say One.]][[wait more]][[say Two.]]')
    await chat.untilShown('One.')
    net.hold()
    net.cut()
    testBridge.emulator.release('more')
    await untilIdle(testBridge.url)
    net.go()
    await reply
    await chat.untilShown('One.Two.')
    expect(chat.error).toBeUndefined()
    const second = chat.send('[[say Three.]][[wait never]]')
    await chat.untilShown('Three.')
    net.fail(1_000)
    net.cut()
    await second
    expect(chat.error).toBeInstanceOf(TypeError)
    net.fail(0)
    await transport.api.stopChat('chat-1')
  })

  test('[CL10] [CL1951] a stop before the server has found the reply to resume, over HTTP, does not stop the next reply', async () => {
    await using testBridge = await TestBridge.open({ disconnectGraceMs: 60_000 })
    const [isStopped, arrives] = [defer(), defer()]
    const delayed: Promise<Response>[] = []
    const late: typeof fetch = (input, init) => {
      if (!/\/(stream\/|stop)/.test(String(input))) return fetch(input, init)
      // The first request is that of the stopped stream.
      const { promise } = delayed.length === 0 ? isStopped : arrives
      const sent = promise.then(() => fetch(input, init))
      delayed.push(sent)
      return sent
    }
    const transport = sseTransport({ url: testBridge.url, headers: HEADERS, fetch: late })
    const chat = await openSse(transport, version)
    const resumed = chat.resume()
    const stopped = chat.stop()
    isStopped.resolve()
    await Promise.all([stopped, resumed])
    const next = chat.send('[[say Next.]][[wait more]][[say Whole.]]')
    await chat.untilShown('Next.')
    arrives.resolve()
    // Also what is sent only now.
    for (const sent of delayed) {
      await sent.catch(() => undefined)
      await transport.api.listChats()
    }
    testBridge.emulator.release('more')
    await next
    expect(chat.text).toBe('Next.Whole.')
  })

  test.each(['without a connection', 'at a proxy without a server'])(
    '[CL10] a stop %s is sent again over HTTP, and the reply is not resumed before',
    async (place) => {
      await using testBridge = await TestBridge.open({ disconnectGraceMs: 60_000 })
      const net = new CuttableFetch()
      const transport = sseTransport({
        url: testBridge.url,
        headers: HEADERS,
        // A page keeps trying.
        backoff: { firstMs: 1, maxMs: 5, attempts: 2 },
        fetch: async (input, init) => {
          if (place === 'without a connection') return net.fetch(input, init)
          // The requests to resume the reply arrive.
          if (!String(input).includes('/stop')) return fetch(input, init)
          const answered = await net.fetch(input, init).catch(() => undefined)
          return answered ?? new Response('Bad gateway', { status: 502 })
        },
      })
      const chat = await openSse(transport, version)
      const reply = chat.send('[[say So far.]][[wait never]]')
      await chat.untilShown('So far.')
      net.fail(1_000)
      net.cut()
      await chat.stop()
      await reply
      const stops = (): number => net.requests.filter((each) => each.endsWith('/stop')).length
      await expect.poll(stops, POLL).toBeGreaterThan(4)
      await chat.resume()
      expect(chat.text).toBe('So far.')
      net.fail(0)
      const { api } = sseTransport({ url: testBridge.url, headers: HEADERS })
      await expect
        .poll(async () => (await api.loadChat('chat-1')).messages.at(-1), POLL)
        .toMatchObject({ id: chat.lastMessage?.id, metadata: { stopped: true } })
      await chat.rest()
      expect(chat.text).toBe('So far.')
      expect(chat.errors).toEqual([])
    },
  )

  test('[CL10] [CL1951] of two stops before the server has found the reply to resume, over HTTP, none stops the next reply', async () => {
    await using testBridge = await TestBridge.open({ disconnectGraceMs: 60_000 })
    const arrives = defer()
    const finding: Promise<Response>[] = []
    const stops: string[] = []
    const late: typeof fetch = (input, init) => {
      const url = String(input)
      if (url.includes('/stop')) stops.push(url)
      if (!url.includes('/stream/')) return fetch(input, init)
      const aborted = new Promise((resolve) =>
        init?.signal?.addEventListener('abort', resolve, { once: true }),
      )
      const found = Promise.race([arrives.promise, aborted]).then(() => fetch(input, init))
      finding.push(found)
      return found
    }
    const transport = sseTransport({ url: testBridge.url, headers: HEADERS, fetch: late })
    const chat = new ApprovingChat(version.open({ id: 'chat-1', messages: [], transport }), {})
    for (let count = 0; count < 2; count += 1) {
      const resumed = chat.resume()
      await Promise.all([chat.stop(), resumed])
    }
    const next = chat.send('[[say Next.]][[wait more]][[say Whole.]]')
    await chat.untilShown('Next.')
    arrives.resolve()
    await Promise.allSettled(finding)
    // A stop would have been sent before this request.
    await transport.api.listChats()
    expect(stops).toEqual([])
    testBridge.emulator.release('more')
    await next
    expect(chat.text).toBe('Next.Whole.')
  })

  test('[CL10] stop() over HTTP stops the turn of a message that was sent while the page resumed', async () => {
    await using testBridge = await TestBridge.open({ disconnectGraceMs: 60_000 })
    const [isShown, isJoined] = [defer(), defer()]
    const slowResume: typeof fetch = async (input, init) => {
      if (!String(input).includes('/stream/')) return fetch(input, init)
      await isShown.promise
      const response = await fetch(input, init)
      setTimeout(() => isJoined.resolve(), 0)
      return response
    }
    const transport = sseTransport({ url: testBridge.url, headers: HEADERS, fetch: slowResume })
    const chat = await openSse(transport, version)
    const resumed = chat.resume()
    const reply = chat.send('[[say So far.]][[wait never]]')
    await chat.untilShown('So far.')
    isShown.resolve()
    await isJoined.promise
    await chat.stop()
    await untilIdle(testBridge.url)
    await Promise.all([reply, resumed])
    expect(chat.text).toBe('So far.')
  })

  test('[CL10] a second resumeStream() over HTTP does not stop the model; stop() of a resumed reply does', async () => {
    await using testBridge = await TestBridge.open({ disconnectGraceMs: 60_000 })
    const { transport } = openTransport(testBridge.url)
    const first = await openSse(transport, version)
    void first.send('[[say One.]][[wait more]][[say Two.]][[wait never]]')
    await first.untilShown('One.')
    const other = sseTransport({ url: testBridge.url, headers: HEADERS })
    const chat = await openSse(other, version)
    void chat.resume()
    await chat.untilShown('One.')
    const again = chat.resume()
    await chat.until(({ status }) => status === 'streaming')
    testBridge.emulator.release('more')
    await chat.untilShown('One.Two.')
    await chat.stop()
    await again
    await untilIdle(testBridge.url)
    await first.until(({ status }) => status === 'ready')
    expect([first.text, chat.text]).toEqual(['One.Two.', 'One.Two.'])
  })
})

/** A response that breaks off before its first chunk. */
function brokenOff(): Response {
  return new Response(
    new ReadableStream({ start: (body) => body.error(new TypeError('terminated')) }),
  )
}

/** Resolves when no turn runs in the chat. Polls until then. */
async function untilIdle(url: string): Promise<void> {
  const api = adkApi({ url, headers: HEADERS })
  while ((await api.loadChat('chat-1')).running) await new Promise(setImmediate)
}
