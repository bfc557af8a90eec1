import { useDemo } from '../demo/use-demo.ts'
import { useTexts } from '../i18n/language.tsx'
import { MODES, useMode } from '../settings/mode.ts'
import { Segmented } from './segmented.tsx'

/** Chooses how the page talks with the model. */
export function ModeSwitch() {
  const { mode: words } = useTexts().shell
  const [mode, choose] = useMode()
  const offered = useDemo()?.modes ?? MODES
  const options = offered.map((value) => ({
    value,
    name: words.names[value],
    explanation: words.explanations[value],
  }))
  return <Segmented label={words.label} options={options} value={mode} onChoose={choose} />
}
