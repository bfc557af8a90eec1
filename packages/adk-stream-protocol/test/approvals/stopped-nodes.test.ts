import { once } from 'node:events'

import { FunctionNode, FunctionTool, Workflow } from '@google/adk'
import { expect, test } from 'vitest'

import { defer } from '../../src/shared/async.ts'
import { agentOf, call, GO, play, type Log } from './support/named-agents.ts'
import { TestBridge } from './support/test-bridge.ts'

/** Ends when the turn is stopped, without an error. */
async function untilStopped(signal: AbortSignal | undefined): Promise<string> {
  if (signal && !signal.aborted) await once(signal, 'abort')
  return 'Stopped.'
}

test.for(['function', 'agent'] as const)(
  '[AP660] no node starts after a turn was stopped in a node: %s',
  async (kind) => {
    const log: Log = []
    const started = defer()
    let waits = true
    const wait = async (signal: AbortSignal | undefined): Promise<string> => {
      started.resolve()
      return waits ? untilStopped(signal) : 'Done.'
    }
    await using testBridge = await TestBridge.open({
      isLive: false,
      respond: play(log, { front: [call('wait'), call('wait')] }),
      agent: (model) => {
        const tool = new FunctionTool({
          name: 'wait',
          description: 'Waits.',
          execute: (_args, context) => wait(context?.abortSignal),
        })
        const front =
          kind === 'agent'
            ? agentOf(model, 'front', [tool])
            : new FunctionNode('front', ({ invocationContext }) =>
                wait(invocationContext.abortSignal),
              )
        const last = new FunctionNode('last', () => {
          log.push('last')
          return 'Last.'
        })
        return new Workflow({ name: 'flow', edges: [['START', front, last]] })
      },
    })
    const page = testBridge.page()
    const first = page.post(GO)
    await started.promise
    await page.fetch(`${testBridge.url}/chats/chat-1/stop`, { method: 'POST' })
    await first
    waits = false
    await page.post({
      id: 'chat-1',
      messages: [{ id: 'm2', role: 'user', parts: [{ type: 'text', text: 'Again.' }] }],
    })
    const again = kind === 'agent' ? ['front', 'front', 'front'] : []
    expect(log).toEqual([...again, 'last'])
    expect(testBridge.errors).toEqual([])
  },
)
