import type { StepProgress } from '../../protocol/message.ts'
import { useAdkLabels } from '../provider.tsx'
import { toDisplayName } from '../reading/display-name.ts'
import { layoutSteps } from '../reading/step-layout.ts'
import { StepGraph } from './step-graph.tsx'

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
