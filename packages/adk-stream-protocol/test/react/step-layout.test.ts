import { expect, test } from 'vitest'

import { layoutSteps, type StepPlace } from '../../src/react/reading/steps.ts'

const show = ({ column, row }: StepPlace) => `${column}/${row}`

/** Describes a graph: `a>b` is an edge, and the names are those of the edges, in order. */
function layout(text: string) {
  const edges = text.split(' ').map((edge) => {
    const [from = '', to = ''] = edge.split('>')
    return { from, to }
  })
  const names = [...new Set(edges.flatMap(({ from, to }) => [from, to]))]
  const steps = names.map((name) => ({ name, state: 'pending' as const }))
  const found = layoutSteps({ agent: 'flow', kind: 'workflow', steps, edges })
  if (!found) return undefined
  const { nodes, lines, returns } = found
  return {
    nodes: nodes.map((node, index) => `${names[index]} ${show(node)}`).join(', '),
    // The places between the two nodes of an edge.
    passes: lines.flatMap(({ places }) => places.slice(1, -1)).map((place) => show(place)),
    returns: returns.map(({ places }) => places.map((place) => show(place)).join(' to ')),
  }
}

test.each([
  ['a fan-out and a join', 'a>b a>c b>d c>d', 'a 0/0.5, b 1/0, c 1/1, d 2/0.5', [], []],
  ['two starts', 'a>c b>c', 'a 0/0, c 1/0.5, b 0/1', [], []],
  ['an edge past a node', 'a>b b>c a>c', 'a 0/0.5, b 1/0, c 2/0.5', ['1/1'], []],
  ['the longest path', 'a>d a>b b>c c>d', 'a 0/0.5, d 3/0.5, b 1/0, c 2/0', ['1/1', '2/1'], []],
  [
    'branches in the order of their sources',
    'a>b a>c c>d b>e',
    'a 0/0.5, b 1/0, c 1/1, d 2/1, e 2/0',
    [],
    [],
  ],
  ['a loop', 'a>b b>c b>a', 'a 0/0, b 1/0, c 2/0', [], ['1/0 to 0/0']],
  ['a loop of all nodes', 'a>b b>a', 'a 0/0, b 1/0', [], ['1/0 to 0/0']],
  ['a node that follows itself', 'a>b b>b', 'a 0/0, b 1/0', [], ['1/0 to 1/0']],
])('[RE410] %s has its place in columns', (_, graph, nodes, passes, returns) => {
  expect(layout(graph)).toEqual({ nodes, passes, returns })
})

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

test.each([
  ['does not branch', 'a>b b>c c>d'],
  [
    'is too long',
    `${range(5)
      .map((n) => `n${n}>n${n + 1}`)
      .join(' ')} n0>n5`,
  ],
  [
    'is too wide',
    range(9)
      .map((n) => `a>n${n}`)
      .join(' '),
  ],
  [
    'has too many nodes',
    range(33)
      .map((n) => `n${n}>m${n}`)
      .join(' '),
  ],
])('[RE410] a workflow that %s remains a list', (_, graph) => {
  expect(layout(graph)).toBeUndefined()
})

test('[RE410] steps without edges, and edges of unknown nodes, are not drawn', () => {
  const steps = ['a', 'b'].map((name) => ({ name, state: 'done' as const }))
  const progress = { agent: 'flow', kind: 'workflow' as const, steps }
  expect(layoutSteps(progress)).toBeUndefined()
  const edges = [
    { from: 'a', to: 'b' },
    { from: 'a', to: 'x' },
  ]
  expect(layoutSteps({ ...progress, edges })).toBeUndefined()
})
