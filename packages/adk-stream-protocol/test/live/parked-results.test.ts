import { expect, test } from 'vitest'

import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { defer } from '../../src/shared/async.ts'
import type { SocketClient } from '../sockets/support/socket-client.ts'
import { textOf } from '../support/chat-probe.ts'
import { joinLive, untilAsked, whole } from './support/live-test-bridge.ts'
import { openParking, toolStates, untilShown } from './support/parking.ts'
import { speak } from './support/voice.ts'

test.each([true, false])(
  '[LV602] the result of a parked call does not cut the reply to a later message off; approved: %s',
  async (approved) => {
    await using testBridge = await openParking()
    await using client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1' })
    client.say(`${callPayment(50)} [[then]] [[say It waits.]]`, 'r1')
    const [id = ''] = await untilAsked(client)
    client.say('[[say One.]] [[wait more]] [[say Two.]]', 'r2')
    await client.untilText('One.', 'r2')
    await testBridge.page().decide(id, { approved })
    // The result is stored, and would have reached the model.
    const ended = approved ? 'output-available' : 'output-denied'
    await expect.poll(() => toolStates(testBridge)).toEqual([ended])
    await client.sync()
    testBridge.emulator.release('more')
    expect(await whole(client, 'r2')).toBe('One.Two.')
    await untilShown(testBridge, 'Told [Result of')
    const texts = (await testBridge.page().messages()).map(textOf)
    expect(texts[1]).toContain('Told [Result of')
    expect(texts[3]).toBe('One.Two.')
  },
)

test.each([true, false])(
  '[LV602] the result of a parked call does not replace a reply that has not started; spoken: %s',
  async (spoken) => {
    await using testBridge = await openParking({ spoken })
    await using client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1', ...(spoken && { audio: 'binary' }) })
    client.say(`${callPayment(50)} [[then]] [[say It waits.]]`, 'r1')
    const [id = ''] = await untilAsked(client)
    const text = '[[wait more]] [[say Later.]]'
    if (spoken) {
      testBridge.emulator.live.queueTranscript(text)
      speak(client)
    } else client.say(text, 'r2')
    await testBridge.untilAsked('[[say Later.]]')
    await testBridge.page().decide(id, { approved: false })
    // The result is stored or streamed, and would have reached the model.
    const isStreamed = () => JSON.stringify(client.frames).includes('"tool-output-denied"')
    await expect
      .poll(async () => isStreamed() || (await toolStates(testBridge)).includes('output-denied'))
      .toBe(true)
    await client.sync()
    testBridge.emulator.release('more')
    await untilShown(testBridge, 'Told [Result of')
    const [, reply, question, later] = await testBridge.page().messages()
    expect(textOf(reply)).toContain('Told [Result of')
    expect([textOf(question), textOf(later)]).toEqual([text, 'Later.'])
  },
)

test('[LV602] the results of two parked calls get a reply each, one after the other', async () => {
  await using testBridge = await openParking()
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say(`${callPayment(50)} ${callPayment(30, '太郎')} [[then]] [[say Both wait.]]`)
  const [first = '', second = ''] = await untilAsked(client, 2)
  client.say('[[say One.]] [[wait more]] [[say Two.]]', 'r2')
  await client.untilText('One.', 'r2')
  await testBridge.page().decide(first, { approved: true })
  await testBridge.page().decide(second, { approved: false })
  await expect.poll(() => toolStates(testBridge)).toEqual(['output-available', 'output-denied'])
  await client.sync()
  testBridge.emulator.release('more')
  await untilShown(testBridge, 'denied this call')
  const [, reply] = await testBridge.page().messages()
  expect(textOf(reply).match(/Told \[Result of the call/g)).toHaveLength(2)
  expect(textOf(reply)).toMatch(/"success":true[^]*"status":"denied"/)
})

test('[LV1200] a call of a later message is shown while an approved call of an earlier one runs, in a held stream', async () => {
  const isPaid = defer()
  const before = (): Promise<void> => isPaid.promise
  await using testBridge = await openParking({
    tools: (wallet) => [paymentTool(wallet, { before })],
  })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  sayHeld(client, callPayment(50), 'r1')
  const [first = ''] = await untilAsked(client)
  await testBridge.page().decide(first, { approved: true })
  await testBridge.page().untilState(first, 'executing')
  sayHeld(client, `${callPayment(30, '太郎')} [[then]] [[say Both.]]`, 'r2')
  const [second = ''] = await untilAsked(client, 1, 'r2')
  // The model does not receive the first result until it has replied to the second message.
  isPaid.resolve()
  await expect.poll(() => toolStates(testBridge)).toContain('output-available')
  await testBridge.page().decide(second, { approved: true })
  expect(await whole(client, 'r2')).toBe('Both.')
  await untilShown(testBridge, 'Told [Result of')
  expect(testBridge.wallet.payments).toHaveLength(2)
})

/** Sends a message whose stream stays open while its calls wait. */
function sayHeld(client: SocketClient, text: string, requestId: string): void {
  const messages = [{ id: `user-${requestId}`, role: 'user', parts: [{ type: 'text', text }] }]
  client.send({ type: 'send', requestId, id: 'chat-1', messages, body: { hold: true } })
}
