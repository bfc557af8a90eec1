import type { StepProgress } from '../../protocol/message.ts'
import { useAdkLabels } from '../provider.tsx'
import { toDisplayName } from '../reading/display-name.ts'

/** Props of `StepList`. */
interface StepListProps {
  readonly progress: StepProgress
}

/** Lists the steps of an agent with their states. */
export function StepList({ progress }: StepListProps) {
  const { steps: labels, tool } = useAdkLabels()
  const { agent, iteration, maxIterations, steps } = progress
  return (
    <figure className="adk-steps">
      <figcaption>
        {labels.title(toDisplayName(agent, tool.names))}
        {iteration !== undefined && ` ${labels.iteration(iteration, maxIterations)}`}
      </figcaption>
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
