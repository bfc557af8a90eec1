import { isRecord } from '../../protocol/guards.ts'
import type { StepProgress, StepState } from '../../protocol/message.ts'

const STATES: ReadonlySet<unknown> = new Set<StepState>([
  'pending',
  'running',
  'waiting',
  'done',
  'stopped',
])

/** Returns the data of a `data-steps` part. Another server may use the name for something else. */
export function readSteps(data: unknown): StepProgress | undefined {
  if (!isSteps(data)) return undefined
  if (data.edges === undefined || isEdges(data.edges)) return data
  const { edges: _unknown, ...progress } = data
  return progress
}

function isEdges(edges: unknown): boolean {
  return (
    Array.isArray(edges) &&
    edges.every(
      (edge: unknown) =>
        isRecord(edge) &&
        typeof edge['from'] === 'string' &&
        typeof edge['to'] === 'string' &&
        (edge['route'] === undefined || typeof edge['route'] === 'string'),
    )
  )
}

function isSteps(data: unknown): data is StepProgress {
  return (
    isRecord(data) &&
    typeof data['agent'] === 'string' &&
    Array.isArray(data['steps']) &&
    data['steps'].every(
      (step: unknown) =>
        isRecord(step) && typeof step['name'] === 'string' && STATES.has(step['state']),
    )
  )
}

/** A place in the drawing of a workflow. A row may be halfway between two others. */
export interface StepPlace {
  readonly column: number
  readonly row: number
}

interface StepLine {
  readonly route: string | undefined
  /** From one node to another, with a place in each column between them. */
  readonly places: readonly StepPlace[]
}

/** Where the nodes and edges of a workflow are drawn. */
export interface StepLayout {
  readonly columns: number
  readonly rows: number
  /** In the order of the steps. */
  readonly nodes: readonly StepPlace[]
  readonly lines: readonly StepLine[]
  /** The edges of loops, which lead back. Each has two places. */
  readonly returns: readonly StepLine[]
}

const MAX_COLUMNS = 5
const MAX_ROWS = 8
const MAX_NODES = 32

interface Slot {
  readonly column: number
  row: number
  readonly before: Slot[]
}

/**
 * Places the nodes of a workflow in columns, by the longest path from the start. Returns nothing if a list is better: the nodes do not
 * branch, or there are too many of them.
 */
export function layoutSteps({ steps, edges = [] }: StepProgress): StepLayout | undefined {
  if (edges.length === 0 || steps.length > MAX_NODES) return undefined
  const indexes = new Map(steps.map(({ name }, index) => [name, index]))
  const links = edges.flatMap(({ from, to, route }) => {
    const [start, end] = [indexes.get(from), indexes.get(to)]
    return start === undefined || end === undefined ? [] : { start, end, route }
  })
  const { order, returning } = sortNodes(steps.length, links)
  const forward = links.filter((link) => !returning.has(link))
  const depths = steps.map(() => 0)
  for (const node of order)
    for (const { start, end } of forward)
      if (start === node) depths[end] = Math.max(depths[end] ?? 0, (depths[node] ?? 0) + 1)
  const columns = Math.max(...depths) + 1
  const isChain = columns === steps.length && links.length < steps.length
  if (isChain || columns > MAX_COLUMNS) return undefined

  const slots = Array.from({ length: columns }, (): Slot[] => [])
  const add = (column: number, before: Slot[] = []): Slot => {
    const slot = { column, row: 0, before }
    slots[column]?.push(slot)
    return slot
  }
  const nodes = depths.map((depth) => add(depth))
  const toPlaces = ({ start, end }: Link): Slot[] =>
    [nodes[start], nodes[end]].filter((slot) => slot !== undefined)
  const lines = forward.flatMap((link) => {
    const [first, last] = toPlaces(link)
    if (!first || !last) return []
    const places = [first]
    let before = first
    while (before.column + 1 < last.column) {
      before = add(before.column + 1, [before])
      places.push(before)
    }
    last.before.push(before)
    return { route: link.route, places: [...places, last] }
  })
  const returns = [...returning].map((link) => ({ route: link.route, places: toPlaces(link) }))
  const rows = Math.max(...slots.map(({ length }) => length))
  if (rows > MAX_ROWS) return undefined
  for (const column of slots) placeInRows(column, rows)
  return { columns, rows, nodes, lines, returns }
}

/** Places the slots of a column in the middle of the rows, each near those that lead to it. */
function placeInRows(column: readonly Slot[], rows: number): void {
  const mean = ({ before }: Slot): number =>
    before.reduce((sum, { row }) => sum + row, 0) / Math.max(before.length, 1)
  const sorted = column.toSorted((one, other) => mean(one) - mean(other))
  for (const [index, slot] of sorted.entries()) slot.row = index + (rows - sorted.length) / 2
}

interface Link {
  readonly start: number
  readonly end: number
  readonly route: string | undefined
}

/** Returns the nodes so that each one follows those that lead to it, and the edges that lead back. */
function sortNodes(count: number, links: readonly Link[]) {
  const returning = new Set<Link>()
  const order: number[] = []
  const states = new Map<number, 'open' | 'done'>()
  const visit = (node: number): void => {
    if (states.has(node)) return
    states.set(node, 'open')
    for (const link of links) {
      if (link.start !== node) continue
      if (states.get(link.end) === 'open') returning.add(link)
      else visit(link.end)
    }
    states.set(node, 'done')
    order.unshift(node)
  }
  const all = Array.from({ length: count }, (_, node) => node)
  for (const node of all) if (!links.some(({ end }) => end === node)) visit(node)
  for (const node of all) visit(node)
  return { order, returning }
}
