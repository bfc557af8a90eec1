import { useLabels } from '../i18n/language.tsx'
import { useStudio } from '../wire/studio-info.ts'

/** Returns the name of the application. */
export function useApplicationName(): string {
  const { title } = useLabels()
  return useStudio()?.title ?? title
}
