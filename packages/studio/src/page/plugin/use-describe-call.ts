import { useCallback } from 'react'

import { useLanguage } from '../i18n/language.tsx'
import { usePlugin } from './plugin-context.ts'

/** Returns the function that describes a call in the language of the page, or returns undefined for a call that the plug-in does not know. */
export function useDescribeCall() {
  const { describeCall } = usePlugin()
  const { language } = useLanguage()
  return useCallback(
    (toolName: string, input: unknown, phase: string): string | undefined =>
      describeCall?.({ toolName, input, phase, language }),
    [describeCall, language],
  )
}
