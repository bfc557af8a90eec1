import { useDemo } from '../demo/use-demo.ts'
import { useLabels } from '../i18n/language.tsx'
import { MODES, useMode } from '../settings/mode.ts'
import { Segmented } from './segmented.tsx'

/** Switches the connection mode. */
export function ModeSwitch() {
  const { mode: labels } = useLabels().shell
  const [mode, choose] = useMode()
  const offered = useDemo()?.modes ?? MODES
  const options = offered.map((value) => ({
    value,
    name: labels.names[value],
    explanation: labels.explanations[value],
  }))
  return <Segmented label={labels.label} options={options} value={mode} onChoose={choose} />
}
