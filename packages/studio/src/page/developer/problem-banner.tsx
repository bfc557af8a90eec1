import { useLabels } from '../i18n/language.tsx'
import { useStudio } from '../wire/studio-info.ts'

/** Says why the code of the agent could not be loaded again, with the lines of the file. The page still uses the previous version. */
export function ProblemBanner() {
  const { problem: labels } = useLabels().shell
  const problem = useStudio()?.problem
  return (
    // A row of the page, also without content.
    <div>
      {problem && (
        <div role="alert" className="problem-banner">
          <p>
            <strong>{labels.title}</strong> {labels.text}
          </p>
          <p className="problem-message">
            {problem.file !== undefined && (
              <code>{[problem.file, problem.line, problem.column].filter(Boolean).join(':')}</code>
            )}{' '}
            {problem.message}
          </p>
          {problem.codeFrame !== undefined && (
            // The frame scrolls, also by keyboard.
            // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
            <pre tabIndex={0} aria-label={labels.code}>
              {problem.codeFrame}
            </pre>
          )}
        </div>
      )}
    </div>
  )
}
