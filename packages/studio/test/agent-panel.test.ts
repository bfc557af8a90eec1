import type { Timeline } from 'adk-stream-protocol/client'
import { describe, expect, test } from 'vitest'

import { arrangeGraph, findActive, type TreeNode } from '../src/page/inspector/agent/agent-tree.ts'
import { readFields, readValue } from '../src/page/inspector/agent/tool-fields.ts'

type Node = Parameters<typeof arrangeGraph>[0]['nodes'][number]

function graphOf(edges: string): Parameters<typeof arrangeGraph>[0] {
  const pairs = edges.split(' ').map((edge) => edge.split('>'))
  const ids = [...new Set(pairs.flat())]
  return {
    nodes: ids.map((id): Node => ({ id, name: id, kind: 'agent' })),
    edges: pairs.flatMap(([from = '', to]) => (to === undefined ? [] : [{ from, to }])),
  }
}

/** Writes a tree as text: `a(b c)`, and `→` before the names of nodes that may follow. */
function write(nodes: readonly TreeNode[]): string {
  return nodes
    .map(({ name, children, next }) => {
      const below = children.length === 0 ? '' : `(${write(children)})`
      return name + below + next.map((each) => `→${each}`).join('')
    })
    .join(' ')
}

test.each([
  ['one agent', 'a', 'a'],
  ['sub-agents and their tools', 'a>b a>c b>d', 'a(b(d) c)'],
  ['the order of a workflow', 'w>a w>b w>c a>b b>c', 'w(a→b b→c c)'],
  ['a loop', 'w>a w>b a>b b>a', 'w(a→b b→a)'],
  ['an agent that two others have', 'a>b a>c b>d c>d', 'a(b(d) c→d)'],
  ['an edge back to the start', 'a>b b>a', 'a(b→a)'],
  ['parts without a connection', 'a>b c>d', 'a(b) c(d)'],
])('[SD1306] the graph of %s is a tree with the other edges as names', (_name, edges, tree) => {
  expect(write(arrangeGraph(graphOf(edges)))).toBe(tree)
})

test('[SD1306] agents and tools are active while they run or wait for a person', () => {
  const entry = { id: '1', messageId: 'm1', at: 1 }
  const call = { toolCallId: 'c1', args: {} }
  const entries = [
    { ...entry, type: 'model', agent: 'planner' },
    { ...entry, type: 'model', agent: 'ended', endedAt: 2 },
    { ...entry, ...call, type: 'tool', toolName: 'search', state: 'running' },
    { ...entry, ...call, type: 'approval', toolName: 'pay', state: 'requested' },
    { ...entry, ...call, type: 'approval', toolName: 'done', state: 'approved', endedAt: 3 },
    // The other fields do not matter here.
  ] as unknown as Timeline['entries']
  const timeline = { chatId: 'c', now: 5, running: true, entries, waits: [], why: '' }
  expect([...findActive(timeline)]).toEqual([
    ['planner', 'running'],
    ['search', 'running'],
    ['pay', 'waiting'],
  ])
})

describe('the form of a tool', () => {
  test.each([
    [{ type: 'string' }, 'text', ''],
    [{ type: 'STRING', default: 'a' }, 'text', 'a'],
    [{ type: 'number', example: 1.5 }, 'number', '1.5'],
    [{ type: ['integer', 'null'] }, 'integer', ''],
    [{ type: 'boolean', default: false }, 'boolean', 'false'],
    [{ type: 'string', enum: ['x', 'y'] }, 'choice', ''],
    [{ type: 'array', default: [1] }, 'json', '[1]'],
    [{ type: 'object', examples: [{ a: 1 }] }, 'json', '{"a":1}'],
    [{ anyOf: [{ type: 'string' }, { type: 'number' }] }, 'json', ''],
    [true, 'json', ''],
  ])('[SD1307] %j is a field of the type %s that contains %j', (schema, type, initial) => {
    const parameters = { type: 'object', properties: { value: schema }, required: ['value'] }
    expect(readFields({ parameters })).toMatchObject([
      { name: 'value', type, initial, isRequired: true },
    ])
  })

  test.each([undefined, {}, { type: 'object' }, { properties: 5 }])(
    '[SD1307] the schema %j has no fields',
    (parameters) => {
      expect(readFields({ ...(parameters && { parameters }) })).toEqual([])
    },
  )

  test.each([
    ['string', 'a', 'a'],
    ['string', '', undefined],
    ['number', '1.5', 1.5],
    ['integer', '', undefined],
    ['boolean', 'true', true],
    ['object', '{"a":[1]}', { a: [1] }],
  ])('[SD1307] the text of a %s, %j, is the argument %j', (type, text, value) => {
    const [field] = readFields({ parameters: { properties: { value: { type } } } })
    expect(field && readValue(field, text)).toEqual(value)
  })

  test('[SD1307] a required text may be empty', () => {
    const parameters = { properties: { value: { type: 'string' } }, required: ['value'] }
    const [field] = readFields({ parameters })
    expect(field && readValue(field, '')).toBe('')
  })
})
