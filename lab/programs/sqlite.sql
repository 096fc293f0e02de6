-- A database, filled, indexed, joined, grouped and changed. :purchases says how many rows its
-- larger table has. All figures come from an arithmetic sequence.
.mode list

CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, region TEXT);
CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER, note TEXT);

WITH RECURSIVE sequence (n) AS
    (SELECT 1 UNION ALL SELECT n + 1 FROM sequence WHERE n < :purchases / 10)
INSERT INTO customer
SELECT n, printf('customer-%06d', n * 7919 % 20011), printf('region-%02d', n * 31 % 53)
FROM sequence;

WITH RECURSIVE sequence (n) AS
    (SELECT 1 UNION ALL SELECT n + 1 FROM sequence WHERE n < :purchases)
INSERT INTO purchase
SELECT n, n * 7907 % (:purchases / 10) + 1, n * 104729 % 9973,
    printf('note %d %s', n, substr('abcdefghijklmnopqrstuvwxyz', n % 20, 1 + n % 7))
FROM sequence;

CREATE INDEX purchase_customer ON purchase (customer);
CREATE INDEX purchase_note ON purchase (note);
CREATE INDEX customer_region ON customer (region, name);

SELECT region, count(*), sum(amount), min(name), max(note)
FROM customer JOIN purchase ON purchase.customer = customer.id
GROUP BY region ORDER BY region;

SELECT substr(note, -3), count(*), total(amount)
FROM purchase GROUP BY substr(note, -3) ORDER BY 2 DESC, 1 LIMIT 20;

UPDATE purchase SET note = note || '/' || amount WHERE id % 3 = 0;
DELETE FROM purchase WHERE amount % 10 = 3;

SELECT name, group_concat(amount, '+') FROM customer JOIN purchase ON customer = customer.id
WHERE region = 'region-07' GROUP BY name ORDER BY name LIMIT 20;

SELECT count(*), count(DISTINCT note), sum(length(note)) FROM purchase;
