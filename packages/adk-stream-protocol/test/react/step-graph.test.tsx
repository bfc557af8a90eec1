import { createEvent, FunctionNode, JoinNode, Workflow } from '@google/adk'
import { render, screen, waitFor } from '@testing-library/react'
import { expect, test } from 'vitest'

import type { AdkUIMessage } from '../../src/client/index.ts'
import { AdkProvider, ja, MessageList } from '../../src/react/index.ts'
import { agentOf, pay, play } from '../approvals/support/named-agents.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { TestBrowser } from './support/chat-page.tsx'

const drawing = () => document.querySelector('.adk-step-graph')
const nodes = () =>
  Array.from(drawing()?.querySelectorAll('[data-state]') ?? [], (node) =>
    Array.from(node.children, ({ textContent }) => textContent).join(': '),
  )
const items = () => screen.getAllByRole('listitem').map(({ textContent }) => textContent)

test('[RE410] a workflow that branches is drawn, with the state of each node, while it runs', async () => {
  await using testBridge = await TestBridge.open({
    isLive: false,
    respond: play([], { settle: [pay('A')] }),
    agent: (model, tools) => {
      const join = new JoinNode({ name: 'both' })
      const route = new FunctionNode('route', () => createEvent({ route: 'due', output: 'Pay.' }))
      const settle = agentOf(model, 'settle', tools)
      const [read, stock, price] = ['read', 'check_stock', 'check_price'].map((name) =>
        agentOf(model, name),
      )
      if (!read || !stock || !price) throw new Error('three agents')
      return new Workflow({
        name: 'invoices',
        edges: [
          ['START', read, stock, join],
          [read, price, join],
          [join, route],
          [route, { due: settle, paid: agentOf(model, 'archive') }],
        ],
      })
    },
  })
  await using browser = new TestBrowser(testBridge, 'sse')
  const page = browser.show({ api: browser.api })
  page.say('Go.')
  await waitFor(() => expect(nodes()).toContain('Settle: Waiting for a response'))
  const done = ['Read: Done', 'Check stock: Done', 'Both: Done', 'Check price: Done', 'Route: Done']
  expect(nodes()).toEqual([...done, 'Settle: Waiting for a response', 'Archive: Not started'])
  const routes = drawing()?.querySelectorAll('.adk-step-route') ?? []
  expect(Array.from(routes, ({ textContent }) => textContent)).toEqual(['Due', 'Paid'])
  expect(drawing()?.querySelectorAll('path')).toHaveLength(7)
  // The list is what assistive technology reads.
  expect(drawing()?.getAttribute('aria-hidden')).toBe('true')
  expect(items()).toContain('Settle Waiting for a response')
  await page.click('Approve')
  await waitFor(() => expect(nodes()).toContain('Settle: Done'))
  expect(testBridge.errors).toEqual([])
})

const steps = [
  { name: 'draft', state: 'done' },
  { name: 'check', state: 'running' },
]
const LOOP = [
  { from: 'draft', to: 'check' },
  { from: 'check', to: 'draft', route: 'again' },
]

test.each([
  ['a loop', LOOP, ['Draft: 完了', 'Check: 実行中'], 1],
  ['a chain', LOOP.slice(0, 1), [], 0],
  ['edges of another kind', [['draft', 'check']], [], 0],
  ['edges that are no list', 'draft', [], 0],
])('[RE410] the drawing of %s, in Japanese', (_, edges, expected, returns) => {
  const data = { agent: 'release', kind: 'workflow', steps, edges }
  const message = { id: 'm1', role: 'assistant', parts: [{ type: 'data-steps', id: 's1', data }] }
  render(
    <AdkProvider labels={ja}>
      <MessageList messages={[message as AdkUIMessage]} status="ready" />
    </AdkProvider>,
  )
  expect(nodes()).toEqual(expected)
  expect(drawing()?.querySelectorAll('[data-returns]').length ?? 0).toBe(returns)
  expect(items()).toEqual(['Draft 完了', 'Check 実行中'])
})
