import { useDemo } from '../demo/use-demo.ts'
import { useLabels } from '../i18n/language.tsx'
import { MODES, useMode } from '../settings/mode.ts'
import { Segmented } from './segmented.tsx'

/** Switches between writing and talking. Direct mode appears only while it is chosen. */
export function ModeSwitch() {
  const { mode: labels } = useLabels().shell
  const [mode, choose] = useMode()
  const offered = useDemo()?.modes ?? MODES
  const options = offered
    .filter((value) => value !== 'direct' || mode === 'direct')
    .map((value) => ({
      value,
      name: labels.names[value],
      explanation: labels.explanations[value],
    }))
  return <Segmented label={labels.label} options={options} value={mode} onChoose={choose} />
}

/** Selects the connection, for developers. */
export function ConnectionChoice() {
  const { mode: labels } = useLabels().shell
  const [mode, choose] = useMode()
  const offered = useDemo()?.modes ?? MODES
  const options = offered.map((value) => ({ value, name: labels.connections[value] }))
  return <Segmented label={labels.connection} options={options} value={mode} onChoose={choose} />
}
