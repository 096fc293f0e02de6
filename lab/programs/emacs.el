;; emacs.el: Emacs edits text, reads and prints Lisp and JSON, and fills tables. EMACS_ROUNDS says
;; how often.  -*- lexical-binding: t -*-

(defun edit (round)
  "Fills a buffer, rewrites it line by line, and returns a checksum."
  (with-temp-buffer
    (dotimes (line 3000)
      (insert (format "line %d of round %d: %d\n" line round (% (* line 7919) 1009))))
    (goto-char (point-min))
    (while (re-search-forward "\\([0-9]+\\) of round" nil t)
      (replace-match (propertize (concat "<" (match-string 1) ">") 'face 'bold) t t))
    (sort-lines t (point-min) (point-max))
    (undo-boundary)
    (goto-char (point-min))
    (while (not (eobp))
      (upcase-word 1)
      (forward-line 2))
    (md5 (current-buffer))))

(defun tables (round)
  "Fills tables of lists, prints and reads them, and returns a checksum."
  (let ((table (make-hash-table :test 'equal)) (sum 0))
    (dotimes (number 4000)
      (push (list number (number-to-string (* number round)) (make-string (% number 90) ?x))
            (gethash (format "key-%d" (% (* number 31) 997)) table)))
    (maphash (lambda (key value)
               (setq sum (+ sum (length (prin1-to-string (cons key value))))))
             table)
    (+ sum (length (json-serialize (json-parse-string (json-serialize table-json)))))))

(defvar table-json
  (let ((table (make-hash-table :test 'equal)))
    (dotimes (number 2000 table)
      (puthash (format "key-%d" number) (vector number "text" (float number)) table))))

(dotimes (round (string-to-number (getenv "EMACS_ROUNDS")))
  (princ (format "%s %d\n" (edit round) (tables round))))
