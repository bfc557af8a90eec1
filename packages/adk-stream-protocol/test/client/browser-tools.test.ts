import type { Chat } from '@ai-sdk/react'
import { describe, expect, test } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import type { AdkApi, AdkUIMessage, WireEvent } from '../../src/client/index.ts'
import { runBrowserTools, sseTransport } from '../../src/client/index.ts'
import type { PartView } from '../../src/client/connection/chat-messages.ts'
import { mayRun } from '../../src/client/tools/browser-tools.ts'
import { createOffer } from '../../src/protocol/call-offers.ts'
import type { Chunk } from '../../src/protocol/chunk.ts'
import { foldChunks } from '../../src/protocol/fold-chunks.ts'
import { TestBridge, type TestBridgeOptions } from '../approvals/support/test-bridge.ts'
import { browserTool } from '../../src/server/index.ts'
import { z } from 'zod'

import { toolParts } from '../support/chat-probe.ts'
import { ASK, TOKYO } from '../support/locating.ts'
import { recoverChat } from '../../src/react/hooks/chat-actions.ts'
import { type ClientChat, ClientPage, openSse, versions } from './support/client-page.ts'
import { CuttableFetch } from './support/cuttable-fetch.ts'

function locating(gated = false): TestBridgeOptions {
  return {
    tools: () => [
      browserTool({
        name: 'get_location',
        description: 'Where the person is.',
        parameters: z.object({}),
        output: z.object({ latitude: z.number(), longitude: z.number() }),
        requireConfirmation: gated,
      }),
    ],
  }
}

/** Clicks the button that a page shows for an error. */
function recover({ attached }: ClientChat, api: AdkApi): Promise<void> {
  // Both versions of the AI SDK have the methods that are used here.
  return recoverChat(attached.chat as unknown as Chat<AdkUIMessage>, api, attached)
}

describe.each(oneOf(versions, 'ai 7'))('$name', (version) => {
  test.each([true, false])(
    '[BT10] [CL12] a browser tool runs once, and its output reaches the model; stream held open: %s',
    async (hold) => {
      await using testBridge = await TestBridge.open(locating())
      const offered: unknown[] = []
      const observe = (event: WireEvent): void => {
        if (event.type === 'chunk' && event.chunk.type === 'data-browser-call')
          offered.push(event.chunk.data.toolCallId)
      }
      await using page = new ClientPage({ url: testBridge.url, version, live: { hold, observe } })
      const chat = await page.open()
      let runs = 0
      runBrowserTools(chat.attached, {
        get_location: () => {
          runs += 1
          return Promise.resolve(TOKYO)
        },
      })
      await chat.send(ASK)
      await chat.untilShown('There you are.')
      await chat.rest()
      expect(runs).toBe(1)
      expect(toolParts(chat.lastMessage)).toMatchObject([
        { state: 'output-available', output: TOKYO },
      ])
      expect(testBridge.lastPrompt).toContain('139.7')
      expect(offered).toEqual(toolParts(chat.lastMessage).map(({ toolCallId }) => toolCallId))
      expect(chat.errors).toEqual([])
    },
  )

  test('[CL12] a browser tool runs over HTTP as well', async () => {
    await using testBridge = await TestBridge.open(locating())
    const transport = sseTransport({ url: testBridge.url, headers: { 'x-api-key': 'hanako' } })
    const chat = await openSse(transport, version)
    runBrowserTools(chat.attached, { get_location: () => TOKYO })
    await chat.send(ASK)
    await chat.untilShown('There you are.')
    await chat.rest()
    expect(testBridge.lastPrompt).toContain('139.7')
  })

  test.each([
    { approved: true, runsExpected: 1, state: 'output-available', hold: true },
    { approved: false, runsExpected: 0, state: 'output-denied', hold: true },
    { approved: true, runsExpected: 1, state: 'output-available', hold: false },
    { approved: false, runsExpected: 0, state: 'output-denied', hold: false },
  ])(
    '[CL12] a gated browser tool runs only if it is approved: $approved, stream held open: $hold',
    async (given) => {
      const { approved, runsExpected, state, hold } = given
      await using testBridge = await TestBridge.open(locating(true))
      const said: string[] = []
      const observe = (event: WireEvent): void => {
        if (event.type !== 'chunk') return
        if (event.chunk.type === 'data-browser-call') said.push('offered')
        if (event.chunk.type === 'data-approval') said.push(event.chunk.data.state)
      }
      await using page = new ClientPage({ url: testBridge.url, version, live: { hold, observe } })
      const chat = await page.open()
      let runs = 0
      runBrowserTools(chat.attached, {
        get_location: () => {
          runs += 1
          return TOKYO
        },
      })
      const answer = chat.send(ASK)
      const [id = ''] = await chat.untilAsked()
      await page.transport.ping()
      expect(runs).toBe(0)
      await chat.click({ id, approved })
      await answer
      await chat.untilShown('There you are.')
      await chat.rest()
      expect(runs).toBe(runsExpected)
      expect(toolParts(chat.lastMessage)).toMatchObject([{ state }])
      expect(chat.text).toBe('There you are.')
      // The outcome of an approved call is reported in a second part.
      expect([...new Set(said)]).toEqual(
        approved ? ['requested', 'approved', 'offered'] : ['requested', 'denied'],
      )
    },
  )

  test('[CL900] a result that could not be sent reaches the model after the person has recovered the chat', async () => {
    await using testBridge = await TestBridge.open(locating())
    const net = new CuttableFetch()
    const headers = { 'x-api-key': 'hanako' }
    const transport = sseTransport({ url: testBridge.url, headers, fetch: net.fetch })
    const chat = await openSse(transport, version)
    let runs = 0
    runBrowserTools(chat.attached, {
      get_location: () => {
        net.fail(Infinity)
        runs += 1
        return TOKYO
      },
    })
    await chat.send(ASK)
    await chat.until(() => chat.status === 'error')
    await recover(chat, sseTransport({ url: testBridge.url, headers }).api)
    net.fail(0)
    await chat.untilShown('There you are.')
    expect(runs).toBe(1)
    expect(testBridge.lastPrompt).toContain('139.7')
  })

  test('[CL900] a call that a recovered chat shows runs', async () => {
    await using testBridge = await TestBridge.open(locating())
    await using page = new ClientPage({ url: testBridge.url, version })
    await (await openSse(page.sse(), version)).send(ASK)
    const chat = await page.open()
    chat.attached.chat.messages = []
    runBrowserTools(chat.attached, { get_location: () => TOKYO })
    await recover(chat, page.sse().api)
    await chat.untilShown('There you are.')
    expect(testBridge.lastPrompt).toContain('139.7')
  })

  test('[CL12] the model receives the error that a browser tool throws', async () => {
    await using testBridge = await TestBridge.open(locating())
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    runBrowserTools(chat.attached, {
      get_location: () => Promise.reject(new Error('The person said no.')),
    })
    await chat.send(ASK)
    expect(testBridge.lastPrompt).toContain('The person said no.')
    expect(toolParts(chat.lastMessage)).toMatchObject([{ state: 'output-error' }])
  })
})

const CALL = { toolCallId: 'call-1', toolName: 'get_location' }
const APPROVAL = { approvalId: 'approval-1', toolCallId: CALL.toolCallId }

function report(state: 'requested' | 'approved' | 'denied'): Chunk {
  return { type: 'data-approval', id: APPROVAL.approvalId, data: { ...APPROVAL, state } }
}

/** What can reach a page about a call, in any order: streamed, replayed, loaded, or read in another tab. */
const REPORTS: Readonly<Record<string, readonly Chunk[]>> = {
  request: [report('requested'), { type: 'tool-approval-request', ...APPROVAL }],
  approval: [report('approved'), { type: 'tool-input-available', ...CALL, input: {} }],
  denial: [report('denied')],
  offer: [createOffer(CALL.toolCallId)],
  output: [{ type: 'tool-output-available', toolCallId: CALL.toolCallId, output: TOKYO }],
  end: [{ type: 'finish', finishReason: 'tool-calls', messageMetadata: {} }],
  stop: [{ type: 'finish', finishReason: 'tool-calls', messageMetadata: { stopped: true } }],
}

function locateInPage(): unknown {
  return TOKYO
}

function* inAnyOrder(names: readonly string[]): Generator<readonly string[]> {
  yield []
  for (const name of names)
    for (const rest of inAnyOrder(names.filter((other) => other !== name))) yield [name, ...rest]
}

/** Whether the page may run the call after it was shown and these reports have arrived. */
function runsAfter(names: readonly string[], tool: Parameters<typeof mayRun>[2]): boolean {
  const shown: Chunk[] = [
    { type: 'start-step' },
    { type: 'tool-input-start', ...CALL },
    { type: 'tool-input-available', ...CALL, input: {} },
  ]
  const message = foldChunks('m1', [...shown, ...names.flatMap((name) => REPORTS[name] ?? [])])
  const parts: readonly PartView[] = message.parts
  return parts.some((part) => part.toolCallId === CALL.toolCallId && mayRun(part, message, tool))
}

test('[CL12] whatever order the reports about a call arrive in, it runs only if it is offered, not undecided, not denied, not stopped and has no output', () => {
  const ran = [...inAnyOrder(Object.keys(REPORTS))].filter((names) =>
    runsAfter(names, locateInPage),
  )
  const wrong = ran.filter((names) => {
    const decision = names.findLast((name) => ['request', 'approval', 'denial'].includes(name))
    const isAllowed = decision === undefined || decision === 'approval'
    const hasEnded = names.includes('stop') || names.at(-1) === 'output'
    return !names.includes('offer') || !isAllowed || hasEnded
  })
  expect(ran).not.toEqual([])
  expect(wrong).toEqual([])
})

test.each([
  { order: [], runs: false },
  { order: ['end'], runs: false },
  { order: ['offer'], runs: true },
  { order: ['offer', 'end'], runs: true },
  { order: ['offer', 'output'], runs: false },
  { order: ['request', 'end'], runs: false },
  { order: ['request', 'approval'], runs: false },
  { order: ['request', 'approval', 'offer'], runs: true, afterApproval: true },
  { order: ['request', 'approval', 'offer', 'end'], runs: true, afterApproval: true },
  { order: ['request', 'approval', 'offer', 'output'], runs: false },
  { order: ['request', 'denial', 'end'], runs: false },
])('[CL12] after $order, a page runs a call: $runs', ({ order, runs, afterApproval = false }) => {
  expect(runsAfter(order, locateInPage)).toBe(runs)
  expect(runsAfter(order, { run: locateInPage, afterApproval: true })).toBe(afterApproval)
})
