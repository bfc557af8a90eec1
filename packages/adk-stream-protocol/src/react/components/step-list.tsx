import type { StepProgress } from '../../protocol/message.ts'
import { useAdkLabels } from '../provider.tsx'

/** Props of `StepList`. */
interface StepListProps {
  readonly progress: StepProgress
}

/** Lists the steps of an agent with their states. */
export function StepList({ progress }: StepListProps) {
  const { steps: labels } = useAdkLabels()
  const { agent, iteration, maxIterations, steps } = progress
  return (
    <figure className="adk-steps">
      <figcaption>
        {labels.title(agent)}
        {iteration !== undefined && ` ${labels.iteration(iteration, maxIterations)}`}
      </figcaption>
      <ol>
        {steps.map(({ name, state }) => (
          <li key={name} data-state={state} aria-current={state === 'running' ? 'step' : undefined}>
            <span dir="auto">{name}</span> <span className="adk-step-state">{labels[state]}</span>
          </li>
        ))}
      </ol>
    </figure>
  )
}
