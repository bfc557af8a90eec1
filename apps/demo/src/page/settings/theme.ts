import { StoredChoice, useChoice } from './stored-choice.ts'

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const theme = new StoredChoice<Theme>({ key: 'theme', values: THEMES, fallback: 'system' })

export function useTheme() {
  return useChoice(theme)
}

/** Shows the page in the theme that was chosen; called before the first rendering, so that nothing flashes. */
export function followTheme(): void {
  const show = () => {
    document.documentElement.dataset['theme'] = theme.read()
  }
  theme.subscribe(show)
  show()
}
