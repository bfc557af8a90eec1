import { waitFor } from '@testing-library/react'
import type { ChatTransport, UIMessageChunk } from 'ai'
import { describe, expect, test } from 'vitest'

import type { AdkUIMessage } from '../../src/client/index.ts'
import { createLocalToolResults } from '../../src/react/hooks/use-browser-tools.ts'
import { NativeServer } from './support/native-server.ts'
import { TestBrowser } from './support/chat-page.tsx'
import { answer, payment } from './support/messages.ts'

const NOWHERE = { url: 'http://127.0.0.1:1' }

test('[RE8] over a plain AI SDK transport, a decision is sent once, and the reply continues', async () => {
  const server = new NativeServer([{ call: 'pay', input: { amount: 50 } }], [{ say: 'Paid.' }])
  await using browser = new TestBrowser(NOWHERE, 'sse')
  const page = browser.show({ transport: server.transport() })
  expect(page.chat.attached).toBeUndefined()
  page.say('Pay.')
  await page.click('Approve')
  await page.until('Paid.')
  await page.untilReady()
  expect(server.payments).toEqual([{ amount: 50 }])
  expect(server.requests).toHaveLength(2)
  expect(page.text).toContain('Approved.')
  expect(page.chat.connection).toEqual({ state: 'idle' })
})

test('[RE8] over a plain AI SDK transport, a denial is sent with its reason', async () => {
  const server = new NativeServer(
    [{ call: 'pay', input: { amount: 50 } }],
    [{ say: 'As you wish.' }],
  )
  await using browser = new TestBrowser(NOWHERE, 'sse')
  const page = browser.show({ transport: server.transport() })
  page.say('Pay.')
  await page.click('Deny…')
  await page.user.keyboard('Not now.{Enter}')
  await page.until('As you wish.')
  await page.untilReady()
  expect(server.payments).toEqual([])
  expect(server.prompt).toContain('Not now.')
  expect(page.text).toContain('Reason: Not now.')
})

test('[RE8][RE9] a tool of the page runs once, and its output is sent without a click', async () => {
  const server = new NativeServer([{ call: 'get_location', input: {} }], [{ say: 'In Tokyo.' }])
  await using browser = new TestBrowser(NOWHERE, 'sse')
  let runs = 0
  const page = browser.show({
    transport: server.transport(),
    tools: { get_location: () => ({ place: `Tokyo ${(runs += 1)}` }) },
  })
  page.say('Where am I?')
  await page.until('In Tokyo.')
  await page.untilReady()
  expect(runs).toBe(1)
  expect(server.prompt).toContain('Tokyo 1')
  expect(server.requests).toHaveLength(2)
})

test('[RE8][RE9] the model receives the exception of a browser tool', async () => {
  const server = new NativeServer([{ call: 'get_location', input: {} }], [{ say: 'I see.' }])
  await using browser = new TestBrowser(NOWHERE, 'sse')
  const page = browser.show({
    transport: server.transport(),
    tools: { get_location: () => Promise.reject(new Error('The person said no.')) },
  })
  page.say('Where am I?')
  await page.until('I see.')
  expect(server.prompt).toContain('The person said no.')
})

test('[RE8][RE9] a tool with `afterApproval` does not run without an approval', async () => {
  const server = new NativeServer([{ call: 'get_location', input: {} }], [{ say: 'In Tokyo.' }])
  await using browser = new TestBrowser(NOWHERE, 'sse')
  let runs = 0
  const locate = () => (runs += 1)
  const page = browser.show({
    transport: server.transport(),
    tools: { get_location: { run: locate, afterApproval: true } },
  })
  page.say('Where am I?')
  await page.until('get_location')
  await page.untilReady()
  page.rerender({})
  expect(runs).toBe(0)
  expect(server.requests).toHaveLength(1)
})

test('[RE9] over a plain AI SDK transport, a call whose stream has broken off does not run', async () => {
  const call = { toolCallId: 'call-1', toolName: 'get_location' }
  const chunks: UIMessageChunk[] = [
    { type: 'start', messageId: 'm1' },
    { type: 'start-step' },
    { type: 'tool-input-available', ...call, input: {} },
  ]
  const transport: ChatTransport<AdkUIMessage> = {
    sendMessages: async () =>
      new ReadableStream({
        pull: (stream) => {
          const chunk = chunks.shift()
          if (chunk) stream.enqueue(chunk)
          else stream.error(new Error('The connection was lost.'))
        },
      }),
    reconnectToStream: async () => null,
  }
  await using browser = new TestBrowser(NOWHERE, 'sse')
  let runs = 0
  const page = browser.show({ transport, tools: { get_location: () => (runs += 1) } })
  page.say('Where am I?')
  await waitFor(() => expect(page.chat.status).toBe('error'))
  page.rerender({})
  expect(page.text).toContain('get_location')
  expect(runs).toBe(0)
})

const run = () => 1
const decided = (approved: boolean) =>
  payment({ state: 'approval-responded', approval: { id: 'approval-1', approved } })

describe('the calls that a page runs', () => {
  test.each([
    { name: 'plain, asked for', tool: run, call: payment({ state: 'input-available' }), takes: 1 },
    { name: 'plain, approved', tool: run, call: decided(true), takes: 1 },
    { name: 'plain, denied', tool: run, call: decided(false), takes: 0 },
    { name: 'gated, approved', tool: { run, afterApproval: true }, call: decided(true), takes: 1 },
    { name: 'gated, denied', tool: { run, afterApproval: true }, call: decided(false), takes: 0 },
    { name: 'gated, waiting', tool: { run, afterApproval: true }, call: payment(), takes: 0 },
    {
      name: 'gated, asked for',
      tool: { run, afterApproval: true },
      call: payment({ state: 'input-available' }),
      takes: 0,
    },
    {
      name: 'not gated, asked for',
      tool: { run, afterApproval: false },
      call: payment({ state: 'input-available' }),
      takes: 1,
    },
  ])('[RE9] $name: $takes', ({ tool, call, takes }) => {
    const answers = createLocalToolResults()
    answers.setTools({ process_payment: tool })
    expect(answers.takeCalls(answer(call))).toHaveLength(takes)
    expect(answers.takeCalls(answer(call))).toEqual([])
  })
})
