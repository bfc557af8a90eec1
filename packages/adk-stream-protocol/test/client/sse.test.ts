import { describe, expect, test } from 'vitest'

import { AdkError, sseTransport } from '../../src/client/index.ts'
import { expectValid } from '../approvals/support/expect-record.ts'
import { Office } from '../approvals/support/office.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { toolParts } from '../support/chat-probe.ts'
import { openSse, versions } from './support/client-page.ts'

/** A transport, and the bodies that it posted to `/stream`. */
function openTransport(url: string, key = 'hanako') {
  const bodies: { messages: { role: string }[] }[] = []
  const transport = sseTransport({
    url,
    headers: { 'x-api-key': key },
    fetch: (input, init) => {
      if (String(input).endsWith('/stream') && init?.method === 'POST')
        bodies.push(JSON.parse(String(init.body)) as (typeof bodies)[number])
      return fetch(input, init)
    },
  })
  return { transport, bodies }
}

describe.each(versions)('$name', (version) => {
  test('[CL1] only what the server needs is sent: the newest message, or the answered calls', async () => {
    await using office = await Office.open()
    const { transport, bodies } = openTransport(office.url)
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
    expect(office.wallet.payments).toHaveLength(1)
    await expectValid(chat.messages)
  })

  test.each([
    [true, true],
    [true, false],
    [false, false],
  ])(
    '[CL2] over HTTP, two decided %s and %s: each is sent once, and none is lost',
    async (alice, bob) => {
      await using office = await Office.open()
      const { transport, bodies } = openTransport(office.url)
      const chat = await openSse(transport, version)
      await chat.send(`${callPayment(30, 'Alice')}${callPayment(40, 'Bob')}[[then]][[say Done.]]`)
      await chat.decide(alice, bob)
      expect(toolParts(chat.lastMessage).map(({ state }) => state)).toEqual(
        [alice, bob].map((approved) => (approved ? 'output-available' : 'output-denied')),
      )
      expect(chat.text).toBe('Done.')
      expect(office.wallet.balance).toBe(1_000 - (alice ? 30 : 0) - (bob ? 40 : 0))
      const told = bodies.flatMap(
        ({ messages }) => JSON.stringify(messages).match(/"approved"/g) ?? [],
      )
      expect(told).toHaveLength(2)
      await expectValid(chat.messages)
    },
  )

  test('[CL4] changed arguments over HTTP: those that do not fit leave the question open', async () => {
    await using office = await Office.open()
    const { transport } = openTransport(office.url)
    const chat = await openSse(transport, version)
    await chat.send(`${callPayment(50)}[[then]][[say Done.]]`)
    const [id = ''] = chat.asked
    await chat.attached.approve(id, { args: { amount: -1, recipient: '花子' } })
    await chat.rest()
    expect(chat.error).toMatchObject({ code: 'bad-request' })
    expect(chat.asked).toEqual([id])
    await chat.attached.approve(id, { args: { amount: 40, recipient: '花子' } })
    await chat.rest()
    expect(office.wallet.payments).toMatchObject([{ amount: 40 }])
    expect(chat.text).toBe('Done.')
    await expectValid(chat.messages)
  })

  test('[CL11] what is refused, and what fails in mid-answer, is an AdkError with its code', async () => {
    await using office = await Office.open()
    const stranger = await openSse(openTransport(office.url).transport, version)
    const { transport } = openTransport(office.url, 'nobody')
    await expect(transport.loadMessages('chat-1')).rejects.toMatchObject({
      code: 'unauthenticated',
    })
    await stranger.send('[[fail 429]]')
    expect(stranger.error).toBeInstanceOf(AdkError)
    expect(stranger.error).toMatchObject({ code: 'model-rate-limited' })
  })

  test('[CL10] stop() over HTTP stops the turn, also within its grace time', async () => {
    await using office = await Office.open({ disconnectGraceMs: 60_000 })
    const { transport } = openTransport(office.url)
    const chat = await openSse(transport, version)
    const answer = chat.send('[[say So far.]][[wait never]][[say Not this.]]')
    await chat.untilShown('So far.')
    const request = await office.emulator.nextRequest()
    await chat.stop()
    await answer
    await request.done
    expect(request.aborted).toBe(true)
  })

  test('[CL8] an answer over HTTP that breaks off is a disconnect, and can be resumed', async () => {
    await using office = await Office.open({ disconnectGraceMs: 60_000 })
    const lost = new AbortController()
    const transport = sseTransport({
      url: office.url,
      headers: { 'x-api-key': 'hanako' },
      fetch: async (input, init) => {
        const response = await fetch(input, init)
        if (init?.method !== 'POST' || !response.body) return response
        const reader = response.body.getReader()
        lost.signal.addEventListener('abort', () => void reader.cancel())
        const body = new ReadableStream<Uint8Array>({
          pull: async (controller) => {
            const { done, value } = await reader.read()
            if (done) controller.close()
            else controller.enqueue(value)
          },
        })
        return new Response(body, response)
      },
    })
    const chat = await openSse(transport, version)
    const answer = chat.send('[[say One.]][[wait more]][[say Two.]]')
    await chat.untilShown('One.')
    lost.abort()
    await answer
    expect(chat.error).toBeInstanceOf(TypeError)
    expect(chat.error?.message).toContain('network')
    const resumed = chat.resume()
    await chat.until(({ status }) => status === 'streaming')
    office.emulator.release('more')
    await resumed
    expect(chat.text).toBe('One.Two.')
    await expectValid(chat.messages)
  })
})
