import type { StepProgress } from '../../protocol/message.ts'
import { useAdkLabels } from '../provider.tsx'
import { toDisplayName } from '../reading/display-name.ts'
import { layoutSteps, type StepLayout, type StepPlace } from '../reading/steps.ts'

/** Props of `StepList`. */
interface StepListProps {
  readonly progress: StepProgress
}

/** Lists the steps of an agent with their states. The nodes of a workflow that branches are drawn too. */
export function StepList({ progress }: StepListProps) {
  const { steps: labels, tool } = useAdkLabels()
  const { agent, iteration, maxIterations, steps } = progress
  const layout = layoutSteps(progress)
  return (
    <figure className="adk-steps">
      <figcaption>
        {labels.title(toDisplayName(agent, tool.names))}
        {iteration !== undefined && ` ${labels.iteration(iteration, maxIterations)}`}
      </figcaption>
      {layout && <StepGraph progress={progress} layout={layout} />}
      <ol>
        {steps.map(({ name, state }) => (
          <li key={name} data-state={state} aria-current={state === 'running' ? 'step' : undefined}>
            <span dir="auto">{toDisplayName(name, tool.names)}</span>{' '}
            <span className="adk-step-state">{labels[state]}</span>
          </li>
        ))}
      </ol>
    </figure>
  )
}

/** Props of `StepGraph`. */
interface StepGraphProps {
  readonly progress: StepProgress
  readonly layout: StepLayout
}

// The sizes of the drawing. Its width is that of the page; heights are in sixteenths of a rem.
const COLUMN = 100
const ROW = 84
const NODE_HEIGHT = 70
const LANE = 20

const toRem = (height: number): string => `${height / 16}rem`

/** Draws the nodes of a workflow in columns, with its edges as lines. The list of the steps says the same to assistive technology. */
function StepGraph({ progress, layout }: StepGraphProps) {
  const { steps: labels, tool } = useAdkLabels()
  const { width, height, margin, nodes, paths, routes } = measureGraph(layout)
  const toLeft = (left: number): string => `${(left / width) * 100}%`
  return (
    <div
      className="adk-step-graph"
      data-wide={layout.columns > 4 || undefined}
      style={{ height: toRem(height) }}
      aria-hidden="true"
    >
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none">
        {paths.map(({ d, returns }, index) => (
          <path key={index} d={d} data-returns={returns || undefined} />
        ))}
      </svg>
      {progress.steps.map(({ name, state }, index) => {
        const node = nodes[index]
        if (!node) return null
        const style = {
          left: toLeft(node.left),
          top: toRem(node.top),
          width: toLeft(node.width),
          height: toRem(NODE_HEIGHT),
        }
        return (
          <div key={name} data-state={state} data-arrow={node.hasArrow || undefined} style={style}>
            <span dir="auto">{toDisplayName(name, tool.names)}</span>
            <span className="adk-step-state">{labels[state]}</span>
          </div>
        )
      })}
      {routes.map(({ route, left, top }, index) => (
        <span
          key={index}
          className="adk-step-route"
          dir="auto"
          style={{ left: toLeft(left), top: toRem(top), maxWidth: toLeft(margin * 1.7) }}
        >
          {toDisplayName(route, tool.names)}
        </span>
      ))}
    </div>
  )
}

/** Returns the coordinates of everything that is drawn. */
function measureGraph({ columns, rows, nodes, lines, returns }: StepLayout) {
  const hasRoutes = lines.some(({ route }) => route !== undefined)
  // The space between two nodes, in which lines and routes are, is twice as wide.
  const margin = hasRoutes ? 16 : 11
  const laneOf = (index: number): number => rows * ROW + (index + 0.5) * LANE
  const leftOf = ({ column }: StepPlace): number => column * COLUMN + margin
  const rightOf = ({ column }: StepPlace): number => (column + 1) * COLUMN - margin
  const toLine = (places: readonly StepPlace[]): string =>
    places
      .map((place, index) => {
        const before = places[index - 1]
        const end = index < places.length - 1 ? ` H${rightOf(place)}` : ''
        if (!before) return `M${rightOf(place)},${middleOf(place)}`
        const turn = place.column * COLUMN
        return `C${turn},${middleOf(before)} ${turn},${middleOf(place)} ${leftOf(place)},${middleOf(place)}${end}`
      })
      .join(' ')
  const toReturn = ([from, to]: readonly StepPlace[], lane: number): string =>
    from && to
      ? `M${rightOf(from)},${middleOf(from)} h${margin / 2} V${lane} H${leftOf(to) - margin / 2} V${middleOf(to)} H${leftOf(to)}`
      : ''
  const isReached = (node: StepPlace): boolean =>
    [...lines, ...returns].some(({ places }) => places.at(-1) === node)
  return {
    width: columns * COLUMN,
    height: rows * ROW + returns.length * LANE,
    margin,
    nodes: nodes.map((node) => ({
      left: leftOf(node),
      top: middleOf(node) - NODE_HEIGHT / 2,
      width: rightOf(node) - leftOf(node),
      hasArrow: isReached(node),
    })),
    paths: [
      ...lines.map(({ places }) => ({ d: toLine(places), returns: false })),
      ...returns.map(({ places }, index) => ({
        d: toReturn(places, laneOf(index)),
        returns: true,
      })),
    ],
    routes: [
      ...lines.flatMap(({ route, places: [from, to] }) =>
        route !== undefined && from && to
          ? { route, left: (from.column + 1) * COLUMN, top: (middleOf(from) + middleOf(to)) / 2 }
          : [],
      ),
      ...returns.flatMap(({ route, places: [from, to] }, index) =>
        route !== undefined && from && to
          ? { route, left: (leftOf(to) + rightOf(from)) / 2, top: laneOf(index) }
          : [],
      ),
    ],
  }
}

function middleOf({ row }: StepPlace): number {
  return (row + 0.5) * ROW
}
