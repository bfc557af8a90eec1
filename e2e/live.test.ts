import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

import { openWorld, type World } from './support/world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterEach(() => world.leave())
afterAll(() => world[Symbol.asyncDispose]())

test('[DM17] two payments wait together in a live chat, and each is decided on its own', async () => {
  const page = await world.visit()
  const asked = await talk(page, {
    send: 'Aliceに30ドル、Bobに40ドル送金してください',
    until: 'end',
  })
  const approvals = asked.flatMap(({ chunk }) =>
    chunk?.type === 'tool-approval-request' ? [String(chunk['approvalId'])] : [],
  )
  expect(approvals).toHaveLength(2)
  const [alice = '', bob = ''] = approvals
  const decided = await decide(page, { [bob]: false, [alice]: true })
  expect(decided).toEqual(['denied', 'approved'])
  await expect
    .poll(() => outputs(page), { timeout: 10_000 })
    .toEqual(['output-available', 'output-denied'])
})

test('[DM17] an answer is spoken: its words and its sound come together', async () => {
  const page = await world.visit()
  const frames = await talk(page, { send: 'Hello', until: 'end' })
  const types = new Set(frames.map(({ chunk }) => chunk?.type))
  expect([...types]).toEqual(expect.arrayContaining(['text-delta', 'data-pcm', 'finish']))
})

interface Frame {
  readonly type: string
  readonly chunk?: { readonly type: string; readonly [key: string]: unknown }
}

/** Says something on a socket of the page's own, and gathers the frames up to one of a type. */
function talk(page: Page, said: { send: string; until: string }): Promise<Frame[]> {
  return page.evaluate(
    ({ send, until }) =>
      new Promise<Frame[]>((resolve, reject) => {
        const frames: Frame[] = []
        const socket = new WebSocket(`${location.origin.replace('http', 'ws')}/live`)
        socket.addEventListener('error', () => reject(new Error('The socket failed.')))
        socket.addEventListener('message', ({ data }) => {
          const frame = JSON.parse(String(data)) as Frame
          frames.push(frame)
          if (frame.type !== until && frame.type !== 'error') return
          socket.close()
          resolve(frames)
        })
        socket.addEventListener('open', () => {
          const parts = [{ type: 'text', text: send }]
          const messages = [{ id: 'm1', role: 'user', parts }]
          const trigger = 'submit-message'
          socket.send(
            JSON.stringify({ type: 'send', requestId: 'r1', id: 'live-chat', trigger, messages }),
          )
        })
      }),
    said,
  )
}

function decide(page: Page, decisions: Record<string, boolean>): Promise<string[]> {
  return page.evaluate(
    (given) =>
      new Promise<string[]>((resolve) => {
        const states: string[] = []
        const entries = Object.entries(given)
        const socket = new WebSocket(`${location.origin.replace('http', 'ws')}/live`)
        socket.addEventListener('message', ({ data }) => {
          const frame = JSON.parse(String(data)) as { type: string; state?: string }
          if (frame.type !== 'decided') return
          states.push(String(frame.state))
          if (states.length < entries.length) return
          socket.close()
          resolve(states)
        })
        socket.addEventListener('open', () => {
          for (const [approvalId, approved] of entries) {
            const decision = { type: 'decide', decisionId: approvalId, id: 'live-chat' }
            socket.send(JSON.stringify({ ...decision, approvalId, approved }))
          }
        })
      }),
    decisions,
  )
}

/** The states of the calls, as the server keeps the chat. */
function outputs(page: Page): Promise<string[]> {
  return page.evaluate(async () => {
    const response = await fetch('/chats/live-chat/messages')
    const { messages } = (await response.json()) as {
      messages: { parts: { type: string; state?: string }[] }[]
    }
    return messages
      .flatMap(({ parts }) => parts)
      .filter(({ type }) => type.startsWith('tool-'))
      .map(({ state }) => String(state))
  })
}
