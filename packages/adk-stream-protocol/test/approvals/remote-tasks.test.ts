import type { Part } from '@a2a-js/sdk'
import { describe, expect, test } from 'vitest'

import type { RemoteReply } from '../support/a2a-server.ts'
import { serveA2a } from '../support/a2a-server.ts'
import { textOf } from '../support/chat-probe.ts'
import { joinLive, openLiveTestBridge } from '../live/support/live-test-bridge.ts'
import { stockClient } from './support/approving-chat.ts'
import { PLACES_BELOW } from './support/remote-places.ts'
import { TestBridge, type TestBridgeOptions } from './support/test-bridge.ts'

const say = (text: string): Part => ({ kind: 'text', text })
const QUESTION: RemoteReply = { state: 'input-required', parts: [say('Which city?')] }

const client = stockClient('7')

describe.each(Object.entries(PLACES_BELOW))('%s', (_place, { agent, send }) => {
  /** Opens a chat in which a remote agent waits. */
  async function openWaiting(options: TestBridgeOptions = {}) {
    const remote = await serveA2a(({ text }) =>
      text.includes('Something else') ? { state: 'completed', parts: [say('Sure.')] } : QUESTION,
    )
    const bridge = await TestBridge.open({
      isLive: false,
      ...options,
      agent: (model) => agent(model, remote),
    })
    const page = bridge.page()
    const chat = await page.open(client)
    await chat.send(send)
    expect(await page.inbox()).toHaveLength(1)
    const stateOf = () => remote.stateOf(remote.received[0]?.taskId ?? '')
    expect(await stateOf()).toBe('input-required')
    return {
      bridge,
      page,
      chat,
      stateOf,
      async [Symbol.asyncDispose]() {
        await bridge[Symbol.asyncDispose]()
        await remote[Symbol.asyncDispose]()
      },
    }
  }

  test('[AP595] deleting a chat cancels the task that waits in it', async () => {
    await using waiting = await openWaiting()
    const { bridge, page, stateOf } = waiting
    expect(await page.delete()).toMatchObject({ status: 204 })
    await expect.poll(stateOf).toBe('canceled')
    expect(bridge.errors).toEqual([])
  })

  test('[AP595] a new message that cancels the question cancels its task', async () => {
    await using waiting = await openWaiting({ whilePending: 'cancel' })
    const { bridge, page, chat, stateOf } = waiting
    await chat.send('[[say Something else.]]')
    await expect.poll(stateOf).toBe('canceled')
    expect(await page.inbox()).toEqual([])
    expect(textOf(chat.lastMessage)).toBe('Something else.')
    expect(bridge.errors).toEqual([])
  })
})

test('[AP595] deleting the data of a person cancels the tasks that wait for them', async () => {
  const { agent, send } = PLACES_BELOW['a sub-agent']
  await using remote = await serveA2a(() => QUESTION)
  await using bridge = await TestBridge.open({ isLive: false, agent: (m) => agent(m, remote) })
  const chat = await bridge.page().open(client)
  await chat.send(send)
  await bridge.bridge.deletePrincipal('hanako', { audit: 'keep' })
  await expect.poll(() => remote.stateOf(remote.received[0]?.taskId ?? '')).toBe('canceled')
})

test('[AP595] a task that cannot be cancelled is reported, and the chat is deleted', async () => {
  const { agent, send } = PLACES_BELOW['a sub-agent']
  const remote = await serveA2a(() => QUESTION)
  await using bridge = await TestBridge.open({ isLive: false, agent: (m) => agent(m, remote) })
  const page = bridge.page()
  const chat = await page.open(client)
  await chat.send(send)
  await remote[Symbol.asyncDispose]()
  expect(await page.delete()).toMatchObject({ status: 204 })
  await expect.poll(() => bridge.errors.length).toBe(1)
  expect(await page.inbox()).toEqual([])
})

test('[AP595] a live model that withdraws the call of a remote agent cancels its task', async () => {
  await using remote = await serveA2a(() => QUESTION)
  await using bridge = await openLiveTestBridge({
    agent: (model) => PLACES_BELOW['an agent used as a tool'].agent(model, remote),
  })
  await using socket = await joinLive(bridge)
  socket.say('[[call helper {"request":"Plan."}]] [[wait seen]] [[cancel]]')
  await expect.poll(() => bridge.page().inbox()).toHaveLength(1)
  bridge.emulator.release('seen')
  await expect.poll(() => remote.stateOf(remote.received[0]?.taskId ?? '')).toBe('canceled')
  expect(await bridge.page().inbox()).toEqual([])
})
