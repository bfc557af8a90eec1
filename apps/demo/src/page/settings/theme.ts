import { StoredChoice, useChoice } from './stored-choice.ts'

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const theme = new StoredChoice<Theme>({ key: 'theme', values: THEMES, fallback: 'system' })

export function useTheme() {
  return useChoice(theme)
}

/** Applies the chosen theme. Called before the first render to avoid a flash. */
export function followTheme(): void {
  const show = () => {
    document.documentElement.dataset['theme'] = theme.read()
  }
  theme.subscribe(show)
  show()
}
